"""MRR and Success@k from the rank of each query's first relevant document, for what is not a TREC run.

Ties are settled before: a search answers in its own order, which is what users see; a training counts ties against
the model, since a model that gives everything one score must not look good; a TREC run is judged as trec_eval does
(metrics.py). From there on the measures are the same.
"""

from __future__ import annotations

import numpy as np

from indexes.dtypes import BoolArray, Float64Array


def first_ranks(relevant: BoolArray) -> Float64Array:
    """Return the rank, from 1, of the first true value of each row of `relevant` [Q, k]; infinity without one."""
    return np.where(relevant.any(axis=1), 1.0 + relevant.argmax(axis=1), np.inf)


def reciprocal_ranks(ranks: Float64Array) -> Float64Array:
    """Return 1 / rank of each query [Q]; 0 where nothing relevant was found. Their mean is the MRR."""
    return 1.0 / ranks


def successes(ranks: Float64Array, cutoff: int) -> Float64Array:
    """Return 1 for each query [Q] whose first relevant document is among the first `cutoff`, 0 for the others."""
    return (ranks <= cutoff).astype(np.float64)
