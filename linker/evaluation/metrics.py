"""trec_eval's measures: one small function each, from the ranks of the judged documents to one value per topic.

Every public function of a Ranking returns float64 [t], one value per judged topic. Except for `num_rel` and
`log_average_precision`, the value is 0 for a topic that the run does not answer.
Sums are taken in trec_eval's order (by rank; over topics in byte order), so that the last printed digit agrees.
Definitions: docs/evaluation.md.
"""

import math

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.base.errors import InputError
from linker.evaluation.ranking import Ranking, nth

FLOOR = 0.00001  # gm_map's smallest average precision
_ELEVEN = tuple(i / 10 for i in range(11))
MOST_GAIN = 4  # gdeval's highest relevance, used to normalise the probability of satisfaction
EPSILON = 0.00001  # trec_eval's smoothing of infAP


def num_q(r: Ranking) -> Float64Array:
    """Return 1 for every answered topic, float64 [t]."""
    return r.answered.astype(np.float64)


def num_ret(r: Ranking) -> Float64Array:
    """Return the number of retrieved documents, float64 [t]."""
    return r.num_ret.astype(np.float64)


def num_rel(r: Ranking) -> Float64Array:
    """Return the number of relevant documents in the judgements, float64 [t]."""
    return r.num_rel.astype(np.float64)


def num_rel_ret(r: Ranking) -> Float64Array:
    """Return the number of relevant documents retrieved, float64 [t]."""
    return r.count(r.relevant).astype(np.float64)


def average_precision(r: Ranking, cutoff: float = math.inf) -> Float64Array:
    """Return the average precision, float64 [t].

    It is the sum of the precisions at the relevant documents' ranks, divided by the number of relevant documents.
    Ranks beyond `cutoff` add nothing.
    """
    hit = r.relevant & (r.rank <= cutoff)
    precision = nth(r.topic[hit]) / r.rank[hit]
    return over(sums(r, hit, precision), r.num_rel)


def log_average_precision(r: Ranking) -> Float64Array:
    """Return log max(average precision, 0.00001), float64 [t]; the exponential of its mean is gm_map."""
    return np.array([math.log(max(ap, FLOOR)) for ap in average_precision(r).tolist()])


def r_precision(r: Ranking) -> Float64Array:
    """Return the precision at rank R, the number of relevant documents, float64 [t]."""
    return over(r.count(r.relevant & (r.rank <= r.num_rel[r.topic])), r.num_rel)


def bpref(r: Ranking) -> Float64Array:
    """Return bpref, float64 [t]: the mean over relevant documents of 1 − min(n, R) / min(R, N).

    n of the N judged non-relevant documents are ranked above the relevant one; R documents are relevant.
    """
    hit = r.relevant
    above = (nth(r.topic) - so_far(r, hit))[hit]
    most = r.num_rel[r.topic[hit]]
    least = np.minimum(most, r.num_nonrel[r.topic[hit]])
    credit = 1.0 - np.minimum(above, most) / np.maximum(least, 1)
    return over(sums(r, hit, np.where(above > 0, credit, 1.0)), r.num_rel)


def reciprocal_rank(r: Ranking, cutoff: float = math.inf) -> Float64Array:
    """Return 1 / rank of the first relevant document, float64 [t]; 0 if there is none up to rank `cutoff`."""
    first = _first_rank(r)
    return np.where(first <= cutoff, 1.0 / first, 0.0)


def interpolated_precision(r: Ranking, recall: float) -> Float64Array:
    """Return the highest precision at or after the rank where `recall` is reached, float64 [t].

    The required number of relevant documents is floor(recall · R + 0.9) in trec_eval 9; version 10 rounds half up.
    """
    hit = r.relevant
    hits_so_far = nth(r.topic[hit])
    exact: Float64Array = np.multiply(recall, r.num_rel, dtype=np.float64)
    needed = np.floor(exact + 0.9) if r.options.compat == "trec_eval-9" else _round_half_up(exact)
    late = hits_so_far >= needed[r.topic[hit]]
    result = np.zeros(len(r.topics))
    np.maximum.at(result, r.topic[hit][late], (hits_so_far / r.rank[hit])[late])
    return result


def eleven_point_average(r: Ranking) -> Float64Array:
    """Return the mean of the interpolated precisions at recall 0, .1, …, 1, float64 [t]."""
    total = np.zeros(len(r.topics))
    for recall in reversed(_ELEVEN):
        total += interpolated_precision(r, recall)
    return total / len(_ELEVEN)


def precision(r: Ranking, cutoff: float) -> Float64Array:
    """Return the number of relevant documents in the top `cutoff`, divided by `cutoff` (even if fewer were found)."""
    return r.count(r.relevant & (r.rank <= cutoff)) / cutoff


def recall(r: Ranking, cutoff: float) -> Float64Array:
    """Return the share of all relevant documents that are in the top `cutoff`, float64 [t]."""
    return over(r.count(r.relevant & (r.rank <= cutoff)), r.num_rel)


def success(r: Ranking, cutoff: float) -> Float64Array:
    """Return 1 if a relevant document is in the top `cutoff`, otherwise 0, float64 [t]."""
    return (_first_rank(r) <= cutoff).astype(np.float64)


def ndcg(r: Ranking, cutoff: float = math.inf) -> Float64Array:
    """Return the discounted cumulative gain divided by the ideal one, float64 [t].

    The gain is the relevance, the discount log2(rank + 1) (Järvelin and Kekäläinen, ACM TOIS 20, 2002). The relevance
    level has no effect.
    """
    hit = (r.rel > 0) & (r.rank <= cutoff)
    dcg = sums(r, hit, r.rel[hit] / _discount(r.rank[hit]))
    topic, gain = r.ideal
    ideal_rank = nth(topic)
    top = ideal_rank <= cutoff
    ideal = np.bincount(topic[top], gain[top] / _discount(ideal_rank[top]), minlength=len(r.topics))
    return over(dcg, ideal)


def set_precision(r: Ranking) -> Float64Array:
    """Return the share of the retrieved documents that are relevant, float64 [t]."""
    return over(num_rel_ret(r), r.num_ret)


def set_recall(r: Ranking) -> Float64Array:
    """Return the share of the relevant documents that are retrieved, float64 [t]."""
    return over(num_rel_ret(r), r.num_rel)


def set_f(r: Ranking) -> Float64Array:
    """Return the harmonic mean of set_P and set_recall, float64 [t]."""
    p, q = set_precision(r), set_recall(r)
    return over(2.0 * p * q, p + q)


def unjudged(r: Ranking, cutoff: float) -> Float64Array:
    """Return how many of the top `cutoff` documents have no judgement or a negative one, divided by `cutoff`."""
    return (np.minimum(r.num_ret, cutoff) - r.count(r.rank <= cutoff)) / cutoff


def over(above: Float64Array | Int64Array, below: Float64Array | Int64Array) -> Float64Array:
    """Return `above` / `below`, 0 if the divisor is 0."""
    result = np.zeros(len(above))
    np.divide(above, below, out=result, where=below != 0)
    return result


def sums(r: Ranking, rows: BoolArray, weights: Float64Array) -> Float64Array:
    """Return the sums of the marked rows' weights per topic [t], added in order of rank, as bincount does."""
    return np.bincount(r.topic[rows], weights, minlength=len(r.topics)).astype(np.float64)


def add_up(numbers: Float64Array) -> float:
    """Return the sum of `numbers` [n], added one by one as in a C loop: np.sum may differ in the last digit."""
    return float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0


def so_far(r: Ranking, marked: BoolArray) -> Int64Array:
    """Return how many rows of the same topic are marked up to each row, inclusive."""
    total = np.cumsum(marked)
    start = np.arange(len(marked)) - nth(r.topic) + 1
    return np.asarray(total - (total - marked)[start] if len(marked) else total, np.int64)


def _first_rank(r: Ranking) -> Float64Array:
    first = np.full(len(r.topics), math.inf)
    hit = r.relevant
    topic = r.topic[hit]
    lead = nth(topic) == 1
    first[topic[lead]] = r.rank[hit][lead]
    return first


def _discount(rank: Int64Array) -> Float64Array:
    table = np.array([math.log2(k + 1) for k in range(1, int(rank.max(initial=0)) + 1)])
    return table[rank - 1]


def _round_half_up(x: Float64Array) -> Float64Array:
    down = np.floor(x)  # floor(x + .5) would round up just below a half
    return down + (x - down >= 0.5)


def rank_biased_precision(r: Ranking, persistence: float) -> Float64Array:
    """Return (1 − p) · Σ p^(rank − 1) of relevant ranks, float64 [t]; p: `persistence` (Moffat & Zobel 2008)."""
    hit = r.relevant
    return (1 - persistence) * sums(r, hit, np.power(persistence, r.rank[hit] - 1.0))


def expected_reciprocal_rank(r: Ranking, cutoff: float) -> Float64Array:
    """Return Σ 1/rank · P(the reader stops there) up to rank `cutoff`, float64 [t], as gdeval computes it.

    A document of relevance g satisfies the reader with probability (2^g − 1) / 2^4 (Chapelle et al., CIKM 2009). The
    relevance level has no effect. Raises InputError if a relevance is above 4.
    """
    if r.rel.max(initial=0) > MOST_GAIN:
        raise InputError(
            f"{r.qrels.source.name}: ERR is defined for relevances of 0 to {MOST_GAIN}, but there is "
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
    """Return the share of the retrieved top `cutoff` that has a judgement of any relevance, float64 [t]."""
    return over(r.count(_counted(r) & (r.rank <= cutoff)), np.minimum(_retrieved(r), cutoff))


def _retrieved(r: Ranking) -> Float64Array:
    return np.minimum(r.num_ret, r.options.most or math.inf).astype(np.float64)


def _counted(r: Ranking) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return flags [m] of the rows that -M does not cut off."""
    return np.asarray(r.rank <= (r.options.most or math.inf), np.bool_)
