"""Area under the ROC curve: the probability that a relevant document outscores a negative one; a tie counts one half.

A topic's documents are the retrieved and the judged ones; judged documents that were not retrieved tie at the end.
The negatives of `auc` are all documents that are not relevant, those of `auc_judged` the judged non-relevant ones
only. A topic without an answer, a positive or a negative has no value (NaN). The micro variants put the documents of
all answered topics into one list and compare scores across topics. -M and -J do not apply.
"""

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, FloatArray, Int64Array
from linker.evaluation.ranking import Ranking, nth


def auc(r: Ranking) -> Float64Array:
    """Return each topic's AUC over all its known documents, float64 [t]."""
    judged = r.rel >= 0
    lost = r.num_rel + r.num_nonrel - r.count(judged)  # judged but not retrieved
    return _by_topic(r, r.num_ret + lost, lost, (r.first + r.last) / 2)


def auc_judged(r: Ranking) -> Float64Array:
    """Return each topic's AUC over its judged documents, float64 [t]."""
    judged = np.flatnonzero(r.rel >= 0)
    topic, first = r.topic[judged], r.first[judged]
    rank = nth(topic)
    opens = np.flatnonzero((np.diff(topic, prepend=-1) != 0) | (np.diff(first, prepend=-1) != 0))
    size = np.diff(np.append(opens, len(topic)))
    middle = np.zeros(len(r.rel))
    middle[judged] = np.repeat(rank[opens] + (size - 1) / 2, size)
    total = r.num_rel + r.num_nonrel
    return _by_topic(r, total, total - np.bincount(topic, minlength=len(r.topics)), middle)


def no_topic_value(r: Ranking) -> Float64Array:
    """Return NaN for every topic, float64 [t]: a micro average has no value per topic."""
    return np.full(len(r.topics), np.nan)


def auc_micro(r: Ranking) -> float:
    """Return the AUC over all known documents of all answered topics in one list."""
    return _pooled(r, r.pool)


def auc_judged_micro(r: Ranking) -> float:
    """Return the AUC over the judged documents of all answered topics in one list."""
    return _pooled(r, r.score[r.rel >= 0])


def mean_of_defined(per_topic: Float64Array) -> float:
    """Return the mean of the values [t] that are not NaN; NaN if there are none."""
    defined = per_topic[~np.isnan(per_topic)]
    return float(np.mean(defined)) if len(defined) else float("nan")


def _by_topic(r: Ranking, total: Int64Array, lost: Int64Array, middle: Float64Array) -> Float64Array:
    """Return each topic's AUC from its rank sums; `total` [t]: its documents; `middle` [m]: the mean rank in a tie."""
    hit = r.relevant
    found = np.bincount(r.topic[hit], minlength=len(r.topics))
    ranks = np.bincount(r.topic[hit], (total[r.topic] + 1 - middle)[hit], minlength=len(r.topics))
    missed: Float64Array = (r.num_rel - found) * (lost + 1) / 2
    return _area(ranks + missed, r.num_rel, total, r.answered)


def _pooled(r: Ranking, scores: FloatArray) -> float:
    """Return the AUC over all answered topics at once; `scores`: those of the retrieved documents to include."""
    ordered = np.sort(scores)
    relevant = r.score[r.relevant]
    below = np.searchsorted(ordered, relevant, "left")
    upto = np.searchsorted(ordered, relevant, "right")
    lost = int((r.num_rel + r.num_nonrel)[r.answered].sum()) - int(np.count_nonzero(r.rel >= 0))
    positives = int(r.num_rel[r.answered].sum())
    ranks = float((lost + (below + 1 + upto) / 2).sum()) + (positives - len(relevant)) * (lost + 1) / 2
    one = np.array([1])
    return float(_area(np.array([ranks]), one * positives, one * (len(scores) + lost), one > 0)[0])


def _area(ranks: Float64Array, positives: Int64Array, total: Int64Array, answered: BoolArray) -> Float64Array:
    positive, negative = positives.astype(np.float64), (total - positives).astype(np.float64)
    area = np.full(len(ranks), np.nan)
    known = answered & (positive > 0) & (negative > 0)
    np.divide(ranks - positive * (positive + 1) / 2, positive * negative, out=area, where=known)
    return area
