"""Measures of incomplete judgements: unjudged documents in the pool have a negative relevance.

Every function of a Ranking returns float64 [t], one value per judged topic, 0 for a topic without an answer. Negative
relevances count only in a ranking that `restrict` has not shortened. Definitions: docs/evaluation.md.
"""

from __future__ import annotations

import math

import numpy as np

from indexes.dtypes import Float64Array
from linker.evaluation.metrics import over, so_far, sums
from linker.evaluation.ranking import Ranking

EPSILON = 0.00001  # trec_eval's smoothing of infAP


def inferred_average_precision(r: Ranking) -> Float64Array:
    """Return infAP, float64 [t], as trec_eval computes it (Yilmaz and Aslam, CIKM 2006).

    Among the documents above a relevant one, unjudged pool documents count as relevant as often as judged ones.
    """
    hit = _counted(r) & r.relevant
    pooled = _counted(r) & (r.rel < 0)
    nonrel = _counted(r) & (r.rel >= 0) & (r.rel < r.options.level)
    above = (r.rank[hit] - 1).astype(np.float64)
    relevant, unjudged, others = so_far(r, hit)[hit] - 1.0, so_far(r, pooled)[hit], so_far(r, nonrel)[hit]
    in_pool = (relevant + others + unjudged) / np.maximum(above, 1)
    share = (relevant + EPSILON) / (relevant + others + 2 * EPSILON)
    expected = 1.0 / (above + 1.0) + (above / (above + 1.0)) * in_pool * share
    return over(sums(r, hit, np.where(above > 0, expected, 1.0)), r.num_rel)


def judged(r: Ranking, cutoff: float = math.inf) -> Float64Array:
    """Return the share of the top `cutoff` that has a judgement of any relevance, float64 [t].

    If fewer documents were retrieved, it is the share of those.
    """
    return over(r.count(_counted(r) & (r.rank <= cutoff)), np.minimum(_retrieved(r), cutoff))


def _retrieved(r: Ranking) -> Float64Array:
    return np.minimum(r.num_ret, r.options.most or math.inf).astype(np.float64)


def _counted(r: Ranking) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return which rows are within -M, flags [m]."""
    return np.asarray(r.rank <= (r.options.most or math.inf), np.bool_)
