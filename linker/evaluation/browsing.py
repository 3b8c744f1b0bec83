"""Measures that model how a reader goes down a ranking: rank-biased precision and expected reciprocal rank.

Every function of a Ranking returns float64 [t], one value per judged topic, 0 for a topic without an answer.
Definitions: docs/evaluation.md.
"""

from __future__ import annotations

import numpy as np

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.evaluation.metrics import sums
from linker.evaluation.ranking import Ranking, nth

MOST_GAIN = 4  # gdeval's highest relevance, used to normalise the probability of satisfaction


def rank_biased_precision(r: Ranking, persistence: float) -> Float64Array:
    """Return (1 − p) · Σ p^(rank − 1) over the relevant documents retrieved, float64 [t].

    `persistence` is p, the probability of going on to the next rank (Moffat and Zobel, ACM TOIS 27, 2008).
    """
    hit = r.relevant
    return (1 - persistence) * sums(r, hit, np.power(persistence, r.rank[hit] - 1.0))


def expected_reciprocal_rank(r: Ranking, cutoff: float) -> Float64Array:
    """Return Σ 1/rank · P(the reader stops there) up to rank `cutoff`, float64 [t], as gdeval computes it.

    A document of relevance g satisfies the reader with probability (2^g − 1) / 2^4 (Chapelle et al., CIKM 2009). The
    relevance level has no effect. Raises InputError if a relevance is above 4.
    """
    if r.rel.max(initial=0) > MOST_GAIN:
        raise InputError(
            f"{r.qrels.source.name}: ERR is defined for relevances of 0 to {MOST_GAIN}, and there is "
            f"{r.rel.max()}: map them to that range"
        )
    gains = (r.rel > 0) & (r.rank <= cutoff)
    topic, rank = r.topic[gains], r.rank[gains]
    chance = (2.0 ** r.rel[gains] - 1) / 2.0**MOST_GAIN
    place = nth(topic)
    result, unsatisfied = np.zeros(len(r.topics)), np.ones(len(r.topics))
    for step in range(1, int(place.max(initial=0)) + 1):  # one document per topic at a time, by rank
        at = place == step
        result[topic[at]] += chance[at] * unsatisfied[topic[at]] / rank[at]
        unsatisfied[topic[at]] *= 1 - chance[at]
    return result
