"""MRR and Success@k from the rank of each query's first relevant document, for rankings other than TREC runs.

The caller breaks ties. A search keeps its own order, which is what users see; training ranks tied documents against
the model, so that giving every document the same score is not rewarded; TREC runs follow trec_eval (metrics.py).
"""

import numpy as np

from indexes.dtypes import AnyArray, BoolArray, Float64Array


def first_ranks(relevant: BoolArray) -> Float64Array:
    """Return the rank, from 1, of the first true value in each row of `relevant` [Q, k]: [Q], infinity without one."""
    return np.where(relevant.any(axis=1), 1.0 + relevant.argmax(axis=1), np.inf)


def reciprocal_ranks(ranks: Float64Array) -> Float64Array:
    """Return 1 / rank for ranks [Q]: [Q], 0 where the rank is infinite. The mean is the MRR."""
    return 1.0 / ranks


def mrr(scores: AnyArray, relevant: BoolArray, valid: BoolArray) -> Float64Array:
    """Return 1 / rank of each query's first relevant candidate by `scores` [n, c], or 0; `valid` excludes padding."""
    order = np.argsort(np.where(valid, -scores, np.inf), axis=1, kind="stable")
    return reciprocal_ranks(first_ranks(np.take_along_axis(relevant, order, 1)))


def successes(ranks: Float64Array, cutoff: int) -> Float64Array:
    """Return Success@`cutoff` for ranks [Q]: float64 [Q], 1 where the rank is at most `cutoff`, otherwise 0."""
    return (ranks <= cutoff).astype(np.float64)
