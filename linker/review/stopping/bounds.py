"""The arithmetic of stopping: exact tail probabilities of urns, the bounds that follow, and their inverses.

Symbols: M documents, K of them relevant, n drawn, x of those relevant; r found so far, τ the target recall, α the
allowed error. Everything uses logarithms of the gamma function, so that a million documents do not overflow.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import lgamma


def needed(relevant: int, target: float) -> int:
    """Return ⌈τR⌉: how many of the `relevant` documents must be found to reach the target recall."""
    return math.ceil(_exact(target) * relevant)


def short_of(found: int, target: float) -> int:
    """Return ⌊r/τ⌋ + 1 − r: the least number of relevant documents left with which the target is missed."""
    return math.floor(found / _exact(target)) + 1 - found


@cache
def _exact(target: float) -> Fraction:
    """Return a number exactly as the user wrote it in decimals, so that 57 / .95 is 60 and not slightly less."""
    return Fraction(repr(float(target)))


def least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least number from `low` for which `holds` is true, or `high` if there is none below it.

    If `holds` is true for a number, it must be true for all numbers above.
    """
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def urn_tail(size: int, relevant: int, drawn: int, weight: float) -> float:
    """Return the probability of no relevant document among those drawn from a biased urn (Wallenius).

    A relevant document is `weight` times as likely to be drawn next as any other: the assumed quality of the ranking.
    """
    others = size - relevant
    if drawn > others:
        return 0.0
    heavy = weight * relevant
    log = lgamma(others + 1) - lgamma(others - drawn + 1) + lgamma(others - drawn + heavy + 1)
    return math.exp(min(log - lgamma(others + heavy + 1), 0.0))


def urn_gap(size: int, relevant: int, weight: float, alpha: float) -> int:
    """Return how many irrelevant documents in a row make `urn_tail` less than `alpha`."""
    enough = max(size - relevant + 1, 0)
    return least(lambda n: urn_tail(size, relevant, n, weight) < alpha, 0, enough)


def log_pmf(x: int, size: int, relevant: int, drawn: int) -> float:
    """Return the logarithm of the hypergeometric probability of `x` relevant among `drawn`; -inf if impossible."""
    if not max(0, drawn - size + relevant) <= x <= min(relevant, drawn):
        return -math.inf
    return _log_choose(relevant, x) + _log_choose(size - relevant, drawn - x) - _log_choose(size, drawn)


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def hypergeometric_tail(x: int, size: int, relevant: int, drawn: int) -> float:
    """Return the hypergeometric probability of at most `x` relevant documents among those drawn."""
    lowest, highest = max(0, drawn - size + relevant), min(relevant, drawn)
    if x >= highest:
        return 1.0
    if x < lowest:
        return 0.0
    return min(math.fsum(math.exp(log_pmf(k, size, relevant, drawn)) for k in range(lowest, x + 1)), 1.0)


def most_left(size: int, drawn: int, x: int, alpha: float) -> int:
    """Return K_U, an upper bound on the relevant documents among `size`, if `x` of `drawn` random ones are relevant.

    It is exceeded in at most `alpha` of samples whose size was fixed beforehand (Clopper and Pearson's bound for
    a finite population).
    """
    top = size - drawn + x
    line = alpha * (1 - 1e-9)  # at a tail of exactly α, rounding must not exclude values within the bound
    return least(lambda k: hypergeometric_tail(x, size, k + 1, drawn) <= line, x, top)


def controls_to_reach(controls: int, target: float, alpha: float) -> int:
    """Return j such that the j-th of the random positive controls must be reached (QBCB); 0 if they are too few.

    j is the least number with BinomCDF(j − 1; controls, target) ≥ 1 − alpha (Lewis, Yang & Frieder, 2021, "Certifying
    one-phase technology-assisted reviews").
    """
    below = 0.0
    for j in range(1, controls + 1):
        below += math.comb(controls, j - 1) * target ** (j - 1) * (1 - target) ** (controls - j + 1)
        if below >= 1 - alpha:
            return j
    return 0
