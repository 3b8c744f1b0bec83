"""A lexicon induced from linked pages: words that co-occur across links more often than if the links were shuffled.

For each pair of words, the 2 × 2 table of linked pages gives G² = 2 Σ O ln(O/E) (Dunning 1993). Competitive linking
(Melamed 2000) keeps the strongest pairs, a few per word. The threshold is the lowest G² above which shuffled links
yield at most a tenth as many pairs (`pairs_by_chance`).
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from indexes.dtypes import Float64Array, Int64Array

MIN_TOGETHER = 3  # minimum number of linked pages with both words
MAX_SHARE = 0.5  # words on a larger share of the linked pages are ignored
MAX_LINKS = 3  # maximum number of translations per word, in either direction
FALSE_SHARE = 0.1  # maximum share of false pairs among those kept, estimated from shuffled links
BLOCK = 512  # source words counted at a time
LEAST = 8.0  # G² of the weakest pairs that are counted
EXACT = 32  # each frequency up to this is a class of its own; larger neighbouring ones share a class
WIDTH = 0.05  # width of the shared classes, on a log scale
STEPS = 64  # number of counts at which a pair's distribution is evaluated
FAR = 12  # how many standard deviations above the mean the largest of these counts is


@dataclass(frozen=True, eq=False)
class WordPairs:
    """Word pairs: int64 columns of `source` and `target` terms and float64 G² (`strength`), each [pairs]."""

    source: Int64Array
    target: Int64Array
    strength: Float64Array


def induce(source: sp.csr_array, target: sp.csr_array) -> sp.csr_array:
    """Return the induced translations as a float32 CSR matrix [v source, v target]; too few links give none.

    `source` [l, v source] and `target` [l, v target] are 0/1 matrices of linked pages, row i linked to row i. The value
    of a pair is its `distinctness`.
    """
    n = source.shape[0]
    left, right = _usable(source, n), _usable(target, n)
    x, y = sp.csr_array(source[:, left]), sp.csr_array(target[:, right])
    associated = _associations(x, y)
    pairs = compete(associated)
    chance, often = pairs_by_chance(_frequency(x), _frequency(y), n, fewest=MIN_TOGETHER)
    strong = pairs.strength >= threshold(pairs.strength, chance, often)
    rows, columns = left[pairs.source[strong]], right[pairs.target[strong]]
    shape = (source.shape[1], target.shape[1])
    values = distinctness(pairs, associated)[strong].astype(np.float32)
    return sp.csr_array((values, (rows, columns)), shape=shape)


def threshold(found: Float64Array, chance: Float64Array, often: Float64Array) -> float:
    """Return the lowest strength at which shuffled links yield at most a tenth as many pairs as `found`.

    `found`: the strengths of the pairs, float64 [pairs]; `chance`: strengths that pairs have by chance, and `often`:
    how many pairs are expected at each, both float64 [c]; all in any order. Infinity if no strength qualifies.
    """
    found, order = np.sort(found), np.argsort(chance)
    above = np.append(np.cumsum(often[order][::-1])[::-1], 0.0)
    by_chance = above[np.searchsorted(chance[order], found)]
    allowed = by_chance <= FALSE_SHARE * (len(found) - np.searchsorted(found, found))
    return float(found[allowed.argmax()]) if allowed.any() else float("inf")


def compete(pairs: WordPairs, most: int = MAX_LINKS) -> WordPairs:
    """Return the pairs in order of strength, without pairs that have a word with `most` stronger partners."""
    order = np.lexsort((pairs.target, pairs.source, -pairs.strength))
    used_source: dict[int, int] = {}
    used_target: dict[int, int] = {}
    indices = []
    for i, s, t in zip(
        order.tolist(), pairs.source[order].tolist(), pairs.target[order].tolist(), strict=True
    ):
        if used_source.get(s, 0) < most and used_target.get(t, 0) < most:
            used_source[s] = used_source.get(s, 0) + 1
            used_target[t] = used_target.get(t, 0) + 1
            indices.append(i)
    chosen = np.array(indices, np.int64)
    return WordPairs(pairs.source[chosen], pairs.target[chosen], pairs.strength[chosen])


def distinctness(pairs: WordPairs, among: WordPairs) -> Float64Array:
    """Return each pair's G² divided by that of its strongest rival (another pair with one of its words): [pairs].

    `among` holds the pairs and all rivals; a pair without one is compared with G² = 8. Words that occur on the same
    few pages, such as the names of a manual's author and translator, are equally associated with all words there.
    """
    rival = np.full(len(pairs.strength), LEAST)
    for words, all_words in ((pairs.source, among.source), (pairs.target, among.target)):
        best, second = np.zeros((2, int(all_words.max(initial=-1)) + 1))
        np.maximum.at(best, all_words, among.strength)
        top = among.strength >= best[all_words]
        np.maximum.at(second, all_words[~top], among.strength[~top])
        tied = np.bincount(all_words[top], minlength=len(best)) > 1
        second = np.where(tied, best, second)
        rival = np.maximum(rival, np.where(pairs.strength >= best[words], second[words], best[words]))
    return np.asarray(pairs.strength / rival)


def _usable(present: sp.csr_array, n: int) -> Int64Array:
    frequency = _frequency(present)
    return np.flatnonzero((frequency >= MIN_TOGETHER) & (frequency <= MAX_SHARE * n))


def _frequency(present: sp.csr_array) -> Int64Array:
    return np.bincount(present.indices, minlength=present.shape[1])


def _associations(x: sp.csr_array, y: sp.csr_array) -> WordPairs:
    """Return the pairs that co-occur in enough links, more often than independent words would, with G² ≥ 8."""
    n = x.shape[0]
    often_x, often_y = _frequency(x).astype(np.float64), _frequency(y).astype(np.float64)
    words, pages = x.T.tocsr().astype(np.int32), y.astype(np.int32)
    parts = []
    for begin in range(0, words.shape[0], BLOCK):
        counts = words[begin : begin + BLOCK] @ pages
        both, columns = counts.data, counts.indices
        rows = np.repeat(np.arange(begin, begin + counts.shape[0]), np.diff(counts.indptr))
        enough = (both >= MIN_TOGETHER) & (both * float(n) > often_x[rows] * often_y[columns])
        rows, columns, both = rows[enough], columns[enough], both[enough]
        strength = g_squared(both.astype(np.float64), often_x[rows], often_y[columns], n)
        strong = strength >= LEAST
        parts.append((rows[strong].astype(np.int64), columns[strong].astype(np.int64), strength[strong]))
    if not parts:
        return WordPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    rows, columns, strength = (np.concatenate([p[i] for p in parts]) for i in range(3))
    return WordPairs(rows, columns, strength)


def g_squared(both: Float64Array, often_x: Float64Array, often_y: Float64Array, n: int) -> Float64Array:
    """Return G² = 2 Σ O ln(O/E) (Dunning 1993) of each pair's 2 × 2 table of `n` linked pages: float64 [...].

    `both`, `often_x`, `often_y`: numbers of links with both words, with the source word and with the target word, all
    float64, broadcastable to [...].
    """
    total = np.zeros(np.broadcast_shapes(both.shape, often_x.shape, often_y.shape))
    for observed, expected in (
        (both, often_x * often_y),
        (often_x - both, often_x * (n - often_y)),
        (often_y - both, (n - often_x) * often_y),
        (n - often_x - often_y + both, (n - often_x) * (n - often_y)),
    ):
        share = np.where(observed > 0, observed * n / np.maximum(expected, 1e-12), 1.0)
        total += observed * np.log(share)
    return 2 * total


def pairs_by_chance(
    often_x: Int64Array, often_y: Int64Array, n: int, *, fewest: int, least: float = LEAST
) -> tuple[Float64Array, Float64Array]:
    """Return the values of G² ≥ `least` that shuffled links give, and how many pairs are expected at each.

    Both are float64 [c]. `often_x` int64 [v source] and `often_y` int64 [v target]: in how many of the `n` links each
    word occurs. A pair counts if at least `fewest` links, and more than expected, contain both words.
    """
    sizes_x, words_x = _classes(often_x)
    sizes_y, words_y = _classes(often_y)
    factorial = gammaln(np.arange(n + 2) + 1.0)
    values, expected = [np.empty(0)], [np.empty(0)]
    for size, words in zip(sizes_x.tolist(), words_x.tolist(), strict=True):
        b = sizes_y[:, None]
        both, step = _counts(size, b, n, fewest)
        possible = both <= np.minimum(size, b)
        both = np.where(possible, both, np.minimum(size, b))
        strength = g_squared(both.astype(np.float64), np.array(float(size)), b.astype(np.float64), n)
        weight = np.exp(_log_probability(both, size, b, n, factorial)) * step * words * words_y[:, None]
        good = possible & (strength >= least)
        values.append(strength[good])
        expected.append(weight[good])
    return np.concatenate(values), np.concatenate(expected)


def _classes(often: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the frequencies that represent the classes, and the number of words in each."""
    shared = EXACT * np.exp(np.round(np.log(np.maximum(often, 1) / EXACT) / WIDTH) * WIDTH)
    sizes, words = np.unique(
        np.where(often <= EXACT, often, np.round(shared)).astype(np.int64), return_counts=True
    )
    return sizes, words


def _counts(size: int, sizes: Int64Array, n: int, fewest: int) -> tuple[Int64Array, Int64Array]:
    """Return 64 counts above the mean for each pair of classes, [c, 64], and the distance between them, [c, 1]."""
    mean = size * sizes / n
    deviation = np.sqrt(mean * (1 - size / n) * (n - sizes) / max(n - 1, 1))
    first = np.maximum(np.floor(mean).astype(np.int64) + 1, fewest)
    step = np.ceil((FAR * deviation + STEPS / 2) / STEPS).astype(np.int64)
    return first + step * np.arange(STEPS), step


def _log_probability(
    both: Int64Array, size: int, sizes: Int64Array, n: int, factorial: Float64Array
) -> Float64Array:
    def choose(k: Int64Array, of: Int64Array | int) -> Float64Array:
        return np.asarray(factorial[of] - factorial[k] - factorial[of - k])

    rest = np.maximum(sizes - both, 0)
    return choose(both, size) + choose(np.minimum(rest, n - size), n - size) - choose(sizes, n)
