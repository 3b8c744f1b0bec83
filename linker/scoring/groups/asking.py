"""Which pairs of documents people are asked about, so that few answers make a precision of the groups certain.

Groups down to a threshold are tested at once: pairs drawn at random from them, judged, and one binomial test (Learn
then Test with one threshold: Angelopoulos et al., 2021). The threshold is the lowest that this test probably passes, by
what P(same story) says, with at most MOST pairs. It is chosen before any answer is known, so that the promise holds
however wrong these probabilities are. A further sample spends half of the error that is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Int64Array
from linker.scoring.probability.promise import DELTA, fewest, tail

MOST = 300  # pairs that people are asked about
ALL = 100  # pairs up to which all of them are asked about
POWER = 0.8  # probability that the test passes if the groups are as certain as they say


@dataclass(frozen=True, slots=True)
class Sample:
    """Pairs to judge: documents of groups of probability `threshold` or more, which have `of` pairs altogether."""

    threshold: float
    pairs: tuple[tuple[str, str], ...]
    of: int


def delta_of(number: int) -> float:
    """Return the error that the `number`-th sample may spend, from 1: all of them together spend no more than 5 %."""
    return DELTA * 0.5**number


def sample(
    groups: Sequence[tuple[float, Sequence[str]]], precision: float, number: int, seed: int = 0
) -> Sample | None:
    """Return the pairs to ask about, of `groups` (probability, different texts), or None if no test would pass.

    `precision`: of the pairs within groups, to be certified; `number`: which sample of these groups it is, from 1.
    """
    ordered = sorted((g for g in groups if len(g[1]) > 1), key=lambda group: -group[0])
    sizes = np.array([math.comb(len(ids), 2) for _, ids in ordered], np.int64)
    held = np.cumsum(sizes)
    expected = np.cumsum(sizes * [p for p, _ in ordered]) / held
    tests = _tests(precision, delta_of(number))
    for last in range(len(ordered) - 1, -1, -1):
        if last + 1 < len(ordered) and ordered[last][0] == ordered[last + 1][0]:
            continue  # groups of one probability are kept or dropped together
        if expected[last] <= precision:
            continue
        count = _needed(float(expected[last]), int(held[last]), tests)
        if count:
            chosen = np.random.default_rng([seed, number]).permutation(int(held[last]))[:count]
            return Sample(
                ordered[last][0], tuple(_pair(ordered, held, int(i)) for i in chosen), int(held[last])
            )
    return None


def passes(judged: int, right: int, of: int, precision: float, number: int) -> bool:
    """Return whether a sample certifies the precision: `right` of `judged` pairs, drawn from `of`."""
    if judged >= of:
        return right >= precision * of
    return tail(judged, right, precision) <= delta_of(number)


def _tests(precision: float, delta: float) -> list[tuple[int, int]]:
    """Return sizes of samples, and how many right pairs each needs at least."""
    from scipy.stats import binom

    sizes = range(fewest(precision, delta), MOST + 1, 10)
    needs = [(size, int(binom.isf(delta, size, precision)) + 1) for size in sizes]
    return [(size, least) for size, least in needs if least <= size]


def _needed(expected: float, of: int, tests: Sequence[tuple[int, int]]) -> int:
    """Return how many of `of` pairs to judge so that a test probably passes; 0 if none does."""
    from scipy.special import bdtrc

    if of <= ALL:
        return of
    return next((min(size, of) for size, least in tests if bdtrc(least - 1, size, expected) >= POWER), 0)


def _pair(groups: Sequence[tuple[float, Sequence[str]]], held: Int64Array, number: int) -> tuple[str, str]:
    """Return the `number`-th pair of all groups, counted from 0."""
    at = int(np.searchsorted(held, number, side="right"))
    ids, rest = groups[at][1], number - (int(held[at - 1]) if at else 0)
    for i in range(len(ids)):
        if rest < len(ids) - 1 - i:
            return ids[i], ids[i + 1 + rest]
        rest -= len(ids) - 1 - i
    raise AssertionError("a pair beyond the last group")
