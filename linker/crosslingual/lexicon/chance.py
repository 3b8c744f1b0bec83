"""How strongly words are associated, and how many word pairs chance would yield.

If the links were shuffled, the number of links that contain both words of a pair would be hypergeometric. Summed over
all pairs, this gives the expected number of pairs at each G²: the mean over all permutations of the links, exact and
without random numbers. Single permutations differ by a factor of two to four, because pages from one source share many
words, so that many pairs appear or vanish together. Competition between pairs lowers their number a little; the
expectation ignores it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from indexes.dtypes import Float64Array, Int64Array

LEAST = 8.0  # G² of the weakest pairs that are counted
EXACT = 32  # each frequency up to this is a class of its own; larger neighbouring ones share a class
WIDTH = 0.05  # width of the shared classes, on a log scale
STEPS = 64  # number of counts at which a pair's distribution is evaluated
FAR = 12  # how many standard deviations the largest of them is above the mean


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
    """Return ln P(both | size, sizes, n) of the hypergeometric distribution: float64 [c, 64]."""

    def choose(k: Int64Array, of: Int64Array | int) -> Float64Array:
        return np.asarray(factorial[of] - factorial[k] - factorial[of - k])

    rest = np.maximum(sizes - both, 0)
    return choose(both, size) + choose(np.minimum(rest, n - size), n - size) - choose(sizes, n)
