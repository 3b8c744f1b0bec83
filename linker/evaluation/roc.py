"""Area under the ROC curve: the chance that a relevant document scores above another one; a tie counts half.

A topic's documents are those retrieved and those judged; judged ones that were not retrieved tie at the very end.
`auc` takes everything that is not relevant as negative, `auc_judged` the judged non-relevant only. A topic without
an answer, without a positive or without a negative has no value (NaN). The micro variants put the documents of all
answered topics into one list and compare scores across topics. -M and -J do not apply.
"""

from __future__ import annotations

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, FloatArray, Int64Array
from linker.evaluation.ranking import Ranking, nth


def auc(r: Ranking) -> Float64Array:
    """Return each topic's AUC over all its known documents, float64 [t]."""
    judged = r.rel >= 0
    lost = r.num_rel + r.num_nonrel - r.count(judged)  # judged, not retrieved
    return _by_topic(r, r.num_ret + lost, lost, (r.first + r.last) / 2)


def auc_judged(r: Ranking) -> Float64Array:
    """Return each topic's AUC over its judged documents, float64 [t]."""
    judged = np.flatnonzero(r.rel >= 0)
    topic, first = r.topic[judged], r.first[judged]
    place = nth(topic)
    opens = np.flatnonzero((np.diff(topic, prepend=-1) != 0) | (np.diff(first, prepend=-1) != 0))
    size = np.diff(np.append(opens, len(topic)))
    middle = np.zeros(len(r.rel))
    middle[judged] = np.repeat(place[opens] + (size - 1) / 2, size)
    total = r.num_rel + r.num_nonrel
    return _by_topic(r, total, total - np.bincount(topic, minlength=len(r.topics)), middle)


def no_topic_value(r: Ranking) -> Float64Array:
    """Return NaN for every topic: a micro average has no value by topic."""
    return np.full(len(r.topics), np.nan)


def auc_micro(r: Ranking) -> float:
    """Return the AUC over all known documents of all answered topics in one list."""
    return _pooled(r, r.pool)


def auc_judged_micro(r: Ranking) -> float:
    """Return the AUC over the judged documents of all answered topics in one list."""
    return _pooled(r, r.score[r.rel >= 0])


def mean_of_defined(per_topic: Float64Array) -> float:
    """Return the mean over the topics that have a value; NaN where none has."""
    defined = per_topic[~np.isnan(per_topic)]
    return float(np.mean(defined)) if len(defined) else float("nan")


def _by_topic(r: Ranking, total: Int64Array, lost: Int64Array, middle: Float64Array) -> Float64Array:
    """Rank sums (Mann–Whitney): `middle` is the mean rank of a retrieved document's tie, `total` all documents."""
    hit = r.relevant
    found = np.bincount(r.topic[hit], minlength=len(r.topics))
    ranks = np.bincount(r.topic[hit], (total[r.topic] + 1 - middle)[hit], minlength=len(r.topics))
    missed: Float64Array = (r.num_rel - found) * (lost + 1) / 2
    return _area(ranks + missed, r.num_rel, total, r.answered)


def _pooled(r: Ranking, scores: FloatArray) -> float:
    """AUC over all answered topics at once; `scores` are those of the retrieved documents that take part."""
    ordered = np.sort(scores)
    mine = r.score[r.relevant]
    below = np.searchsorted(ordered, mine, "left")
    upto = np.searchsorted(ordered, mine, "right")
    lost = int((r.num_rel + r.num_nonrel)[r.answered].sum()) - int(np.count_nonzero(r.rel >= 0))
    positives = int(r.num_rel[r.answered].sum())
    ranks = float((lost + (below + 1 + upto) / 2).sum()) + (positives - len(mine)) * (lost + 1) / 2
    one = np.array([1])
    return float(_area(np.array([ranks]), one * positives, one * (len(scores) + lost), one > 0)[0])


def _area(ranks: Float64Array, positives: Int64Array, total: Int64Array, answered: BoolArray) -> Float64Array:
    positive, negative = positives.astype(np.float64), (total - positives).astype(np.float64)
    area = np.full(len(ranks), np.nan)
    known = answered & (positive > 0) & (negative > 0)
    np.divide(ranks - positive * (positive + 1) / 2, positive * negative, out=area, where=known)
    return area
