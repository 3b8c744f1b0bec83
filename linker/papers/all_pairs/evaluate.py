"""The AST tables: score every article against every tweet and compare with the known links (Danovitch, AST).

The metrics are exact. Each block of scores is sorted once; the number of pairs above each link's score determines
every metric. Memory: the vectors, about 300 MiB for a block, and a few numbers per link; 50,000 × 50,000 pairs in 768
dimensions need less than 1 GiB in addition to the input vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes.arrays import normalised
from indexes.dtypes import Float64Array, FloatArray, Int64Array
from linker.base.errors import InputError
from linker.papers.all_pairs.result import RANKS, Confusion, PairEvaluation, ReadingEffort

_BLOCK = 1 << 24  # scores in memory at a time
_FEW = 16  # up to this many links, an article's scores are counted rather than sorted


@dataclass(frozen=True)
class _Scorer:
    """`block(i, j)` scores articles i … j − 1 with all tweets, [j − i, tweets]; `single` scores pairs [n, 2], [n]."""

    articles: int
    tweets: int
    block: Callable[[int, int], FloatArray]
    single: Callable[[Int64Array], FloatArray]


@dataclass(frozen=True)
class _Options:
    ranks: tuple[int, ...]
    thresholds: tuple[float, ...]
    until: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.ranks or min((*self.ranks, *self.until)) < 1:
            raise InputError("ranks and numbers of links to read must be positive")


def evaluate_vectors(
    articles: npt.ArrayLike,
    tweets: npt.ArrayLike,
    links: npt.ArrayLike,
    *,
    normalise: bool = True,
    ranks: Sequence[int] = RANKS,
    thresholds: Sequence[float] = (),
    until: Sequence[int] = (),
) -> PairEvaluation:
    """Evaluate article vectors [n, d] and tweet vectors [m, d] against `links` [l, 2], rows (article, tweet).

    Scores are float32: cosines if `normalise` (0 for a zero vector), otherwise inner products. `ranks`: cutoffs of
    precision over all pairs; `thresholds`: scores at which to count a confusion matrix; `until`: numbers of links to
    find, for which the number of pairs to read is reported. Raises InputError if shapes do not match, a vector holds
    NaN or infinity, a link is out of range, or there are no links.
    """
    a, t = _vectors(articles, "articles", normalise), _vectors(tweets, "tweets", normalise)
    if a.shape[1] != t.shape[1]:
        raise InputError(f"articles have {a.shape[1]} dimensions, tweets {t.shape[1]}")
    scorer = _Scorer(len(a), len(t), lambda i, j: a[i:j] @ t.T, lambda pairs: _dots(a, t, pairs))
    return _evaluate(scorer, links, _Options(tuple(ranks), tuple(thresholds), tuple(until)))


def _vectors(values: npt.ArrayLike, what: str, normalise: bool) -> npt.NDArray[np.float32]:
    matrix = np.asarray(values, np.float32)
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"{what}: vectors have shape {matrix.shape}, expected [n, d]")
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        raise InputError(f"{what}: vector {int(np.argmin(finite))} holds NaN or infinity")
    return normalised(matrix) if normalise else matrix


def _dots(a: npt.NDArray[np.float32], t: npt.NDArray[np.float32], pairs: Int64Array) -> FloatArray:
    parts = [
        np.einsum("nd,nd->n", a[p[:, 0]], t[p[:, 1]]) for p in np.array_split(pairs, 1 + len(pairs) // 10_000)
    ]
    return np.concatenate(parts)


def _links(links: npt.ArrayLike, articles: int, tweets: int) -> Int64Array:
    pairs = np.asarray(links)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        raise InputError(
            f"links must be at least one pair of row numbers (article, tweet), [l, 2]; got shape {pairs.shape}"
        )
    wrong = (pairs < 0).any(axis=1) | (pairs[:, 0] >= articles) | (pairs[:, 1] >= tweets)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"link {at} {tuple(pairs[at].tolist())} is outside {articles} articles × {tweets} tweets"
        )
    return np.unique(pairs.astype(np.int64), axis=0)


@dataclass
class _PairCounts:
    """Per link, how many of all pairs, or of its article's, score higher (`above`) and at least as high (`upto`)."""

    above: Int64Array
    upto: Int64Array

    @classmethod
    def zeros(cls, size: int) -> _PairCounts:
        return cls(np.zeros(size, np.int64), np.zeros(size, np.int64))

    def add(self, ascending: FloatArray, scores: FloatArray, rows: slice = slice(None)) -> None:
        """For each link in `rows`, count the pairs that score higher, and those that score at least as high.

        The counts are added to the earlier ones. `ascending` are the sorted scores of some pairs, `scores` those of the
        links.
        """
        self.above[rows] += len(ascending) - np.searchsorted(ascending, scores, "right")
        self.upto[rows] += len(ascending) - np.searchsorted(ascending, scores, "left")


def _evaluate(scorer: _Scorer, links: npt.ArrayLike, options: _Options) -> PairEvaluation:
    pairs = _links(links, scorer.articles, scorer.tweets)
    scores = scorer.single(pairs)
    looked_up = np.concatenate((scores, np.array(options.thresholds, scores.dtype)))
    order = np.argsort(looked_up, kind="stable")
    everywhere, within = _PairCounts.zeros(len(order)), _PairCounts.zeros(len(pairs))
    depth = max(options.ranks)
    top = np.empty(0, scores.dtype)
    step = max(1, _BLOCK // scorer.tweets)
    for begin in range(0, scorer.articles, step):
        end = min(begin + step, scorer.articles)
        block = scorer.block(begin, end)
        low, high = np.searchsorted(pairs[:, 0], (begin, end)).tolist()
        part = pairs[low:high]
        # Block products round differently: use one score per link everywhere.
        block[part[:, 0] - begin, part[:, 1]] = scores[low:high]
        _count_within(block, pairs[low:high, 0] - begin, scores[low:high], within, low)
        flat = block.ravel()
        flat.sort()
        everywhere.add(flat, looked_up[order])
        top = np.sort(np.concatenate((top, flat[-depth:])))[-depth:]
    counts = _PairCounts.zeros(len(order))
    counts.above[order], counts.upto[order] = everywhere.above, everywhere.upto
    return _result(scorer, pairs, scores, (counts, within), top[::-1], options)


def _count_within(
    block: FloatArray, rows: Int64Array, scores: FloatArray, within: _PairCounts, offset: int
) -> None:
    """Count each link against the tweets of its own article; `rows` are in ascending order."""
    linked, starts = np.unique(rows, return_index=True)
    stops = np.append(starts, len(rows))[1:]
    for row, start, stop in zip(linked.tolist(), starts.tolist(), stops.tolist(), strict=True):
        part = slice(offset + start, offset + stop)
        if stop - start > _FEW:
            within.add(np.sort(block[row]), scores[start:stop], part)
        else:  # two passes over the row per link cost less than sorting it
            within.above[part] = np.count_nonzero(block[row] > scores[start:stop, None], axis=1)
            within.upto[part] = np.count_nonzero(block[row] >= scores[start:stop, None], axis=1)


def _result(
    scorer: _Scorer,
    pairs: Int64Array,
    scores: FloatArray,
    counts: tuple[_PairCounts, _PairCounts],
    top: FloatArray,
    options: _Options,
) -> PairEvaluation:
    everywhere, within = counts
    size, total = len(scores), scorer.articles * scorer.tweets
    overall = _PairCounts(everywhere.above[:size], everywhere.upto[:size])
    article = pairs[:, 0]
    group = np.unique(article, return_inverse=True)[1]
    per_group = np.bincount(group)
    ap = np.bincount(group, _precisions(scores, within, group)) / per_group
    has_negative = per_group < scorer.tweets
    area = np.full(len(per_group), np.nan)
    wins = np.bincount(group, _negatives_below(scores, within, group, per_group[group], scorer.tweets))
    np.divide(wins, per_group * (scorer.tweets - per_group), out=area, where=has_negative)
    one = np.zeros(size, np.int64)
    micro_wins = _negatives_below(scores, overall, one, one + size, total).sum()
    at = {r: _precision_at(r, top, scores, overall, total) for r in options.ranks}
    return PairEvaluation(
        articles=scorer.articles,
        tweets=scorer.tweets,
        links=size,
        precision_at=at,
        map_micro=float(_precisions(scores, overall, one).mean()),
        map_macro=float(ap.mean()),
        auc_micro=float(micro_wins / (size * (total - size))) if size < total else math.nan,
        auc_macro=float(area[has_negative].mean()) if has_negative.any() else math.nan,
        articles_without_link=scorer.articles - len(per_group),
        articles_without_negative=int(np.count_nonzero(~has_negative)),
        thresholds=tuple(
            _threshold(t, scores, int(n), total)
            for t, n in zip(options.thresholds, everywhere.upto[size:], strict=True)
        ),
        until=tuple(_reading(n, overall, within, group) for n in options.until),
    )


def _rank_among(scores: FloatArray, group: Int64Array, ascending: bool) -> tuple[Int64Array, Int64Array]:
    """Return, for each link, how many links of its group rank before it, and how many rank before it or tie with it.

    The first count excludes ties; the second includes the link itself. Links rank by ascending score if `ascending`,
    otherwise by descending score.
    """
    key = scores if ascending else -scores
    order = np.lexsort((key, group))
    g, s = group[order], key[order]
    new = np.ones(len(g), np.bool_)
    new[1:] = (g[1:] != g[:-1]) | (s[1:] != s[:-1])
    opens = np.flatnonzero(new)
    base = np.searchsorted(g, g[opens])
    run = np.cumsum(new) - 1
    below, upto = np.empty(len(g), np.int64), np.empty(len(g), np.int64)
    below[order] = (opens - base)[run]
    upto[order] = (np.append(opens[1:], len(g)) - base)[run]
    return below, upto


def _precisions(scores: FloatArray, counts: _PairCounts, group: Int64Array) -> Float64Array:
    """Return the precision at each link's score: the share of links among the pairs that score at least as high."""
    return np.asarray(_rank_among(scores, group, ascending=False)[1] / counts.upto, np.float64)


def _negatives_below(
    scores: FloatArray, counts: _PairCounts, group: Int64Array, links: Int64Array, total: int
) -> Float64Array:
    """Return, for each link, how many unlinked pairs score lower; a tie counts as one half."""
    below, upto = _rank_among(scores, group, ascending=True)
    less = (total - counts.upto) - below
    not_more = (total - counts.above) - upto
    return np.asarray((less + not_more) / 2, np.float64)


def _precision_at(r: int, top: FloatArray, scores: FloatArray, overall: _PairCounts, total: int) -> float:
    """Return the share of links in the top r pairs, averaged over all orders of a tie at r. NaN if r > pairs."""
    if r > total:
        return math.nan
    last = top[r - 1]
    tied = np.flatnonzero(scores == last)
    links = float(np.count_nonzero(scores > last))
    if len(tied):
        room = r - overall.above[tied[0]]
        links += len(tied) * room / (overall.upto - overall.above)[tied[0]]
    return links / r


def _threshold(value: float, scores: FloatArray, accepted: int, total: int) -> Confusion:
    hits = int(np.count_nonzero(scores >= scores.dtype.type(value)))
    missed = len(scores) - hits
    return Confusion(value, hits, accepted - hits, missed, total - accepted - missed)


def _reading(links: int, overall: _PairCounts, within: _PairCounts, group: Int64Array) -> ReadingEffort:
    """Return how many pairs must be read to find `links` links; all pairs tied with the last one are read."""
    order = np.lexsort((within.upto, group))
    starts = np.searchsorted(group[order], np.arange(int(group.max()) + 1))
    enough = starts[np.bincount(group) >= links] + links - 1
    read = within.upto[order][enough]
    every = np.sort(overall.upto)
    return ReadingEffort(
        links=links,
        pairs=int(every[links - 1]) if links <= len(every) else None,
        articles=len(read),
        mean_tweets=float(read.mean()) if len(read) else math.nan,
        median_tweets=float(np.median(read)) if len(read) else math.nan,
    )
