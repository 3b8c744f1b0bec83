"""Choose the pairs of documents for people to judge, so that a few answers suffice to certify the groups' precision.

All groups above a threshold are tested together: pairs drawn at random from them, judged, and one binomial test
(Learn then Test with one threshold: Angelopoulos et al., 2021). The threshold is the lowest at which this test
probably passes, according to P(same story), with at most MOST pairs. It is chosen before any answer is known, so the
promise holds however wrong these probabilities are. Each further sample spends half of the remaining error.

The number of right pairs between groups is estimated from strata: pairs within groups, and compared pairs between
groups, by P(same story). Some pairs of each stratum are drawn at random, so each pair's probability of being drawn is
known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Int64Array
from linker.scoring.groups.stories import Stories
from linker.scoring.probability.promise import DELTA, fewest, tail

MOST = 300  # maximum number of pairs that people judge
ALL = 100  # if there are at most this many pairs, people judge all of them
BANDS = (0.1, 0.0)  # minimum P(same story) of the strata between groups
# pairs to judge to estimate recall: within groups, between groups, and the minimum per stratum between groups
WITHIN, BETWEEN, LEAST = 80, 220, 40
POWER = 0.8  # probability that the test passes if the probabilities are right


@dataclass(frozen=True, slots=True)
class Sample:
    """Pairs to judge, from the groups of probability `threshold` or more, which have `of` pairs in total."""

    threshold: float
    pairs: tuple[tuple[str, str], ...]
    of: int


@dataclass(frozen=True, slots=True)
class Stratum:
    """Pairs to judge, drawn at random from `of` pairs."""

    of: int
    pairs: tuple[tuple[str, str], ...]


def strata(stories: Stories, ids: Sequence[str], seed: int = 0) -> tuple[Stratum, ...]:
    """Return the pairs of different texts to judge to estimate recall: within groups, then between them by BANDS.

    Each stratum between groups gets LEAST pairs, and a share of the others by its size and its uncertainty (Neyman,
    1934).
    """
    rng = np.random.default_rng(seed)
    texts = np.flatnonzero(stories.leader == np.arange(len(ids)))
    order = texts[np.argsort(stories.labels[texts], kind="stable")]
    parts = np.split(order, np.flatnonzero(np.diff(stories.labels[order])) + 1)
    groups = [(1.0, [ids[i] for i in part.tolist()]) for part in parts if len(part) > 1]
    ends = np.cumsum([math.comb(len(part), 2) for _, part in groups])
    count = int(ends[-1]) if len(ends) else 0
    numbers = rng.permutation(count)[:WITHIN].tolist()
    layers = [Stratum(count, tuple(_pair(groups, ends, i) for i in numbers))]
    between = stories.labels[stories.pairs[:, 0]] != stories.labels[stories.pairs[:, 1]]
    pairs, p = stories.pairs[between], stories.probabilities[between]
    bands = [(p >= low) & (p < high) for low, high in zip(BANDS, (np.inf, *BANDS), strict=False)]
    needs = [
        band.sum() * math.sqrt(p[band].mean() * (1 - p[band].mean())) if band.any() else 0.0 for band in bands
    ]
    for band, need in zip(bands, needs, strict=True):
        size = LEAST + int((BETWEEN - LEAST * len(BANDS)) * need / max(sum(needs), 1e-9))
        sample = pairs[rng.permutation(np.flatnonzero(band))[:size]]
        layers.append(Stratum(int(band.sum()), tuple((ids[a], ids[b]) for a, b in sample.tolist())))
    return tuple(layers)


def recall(judged: Sequence[tuple[int, int, int]]) -> tuple[float, float, float]:
    """Return the share of right pairs that is within groups: its estimate, and the ends of its 95 % interval.

    `judged`: of each stratum, how many pairs it has, how many of them are judged, and how many of these are right;
    the first stratum has the pairs within groups, the others have pairs between groups. The interval follows from exact
    bounds for each stratum (Clopper and Pearson, 1934); the probability that any of them is wrong is at most 5 %
    (Bonferroni).
    """
    bounds = [_right(*stratum, DELTA / 2 / len(judged)) for stratum in judged]
    (said, low, high), between = bounds[0], [sum(ends) for ends in zip(*bounds[1:], strict=True)]
    return _share(said, between[0]), _share(low, between[2]), _share(high, between[1])


def _right(of: int, judged: int, right: int, alpha: float) -> tuple[float, float, float]:
    """Return how many of `of` pairs are right: the estimate and bounds, each wrong with a probability of `alpha`."""
    from scipy.special import betaincinv

    if judged >= of:
        return right, right, right
    if not judged:
        return 0.0, 0.0, of
    low = float(betaincinv(right, judged - right + 1, alpha)) if right else 0.0
    high = float(betaincinv(right + 1, judged - right, 1 - alpha)) if right < judged else 1.0
    return of * right / judged, max(of * low, right), min(of * high, of - (judged - right))


def _share(within: float, between: float) -> float:
    return within / (within + between) if within + between else 1.0


def delta_of(number: int) -> float:
    """Return the error that the `number`-th sample (from 1) may spend; all samples together spend no more than 5 %."""
    return DELTA * 0.5**number


def sample(
    groups: Sequence[tuple[float, Sequence[str]]], precision: float, number: int, seed: int = 0
) -> Sample | None:
    """Return the pairs to judge from `groups` (probability, different texts), or None if no test would pass.

    `precision`: the precision of pairs within groups to certify; `number`: the sample's number for these groups, from
    1.
    """
    ordered = sorted((g for g in groups if len(g[1]) > 1), key=lambda group: -group[0])
    sizes = np.array([math.comb(len(ids), 2) for _, ids in ordered], np.int64)
    ends = np.cumsum(sizes)
    expected = np.cumsum(sizes * [p for p, _ in ordered]) / ends
    tests = _tests(precision, delta_of(number))
    for last in range(len(ordered) - 1, -1, -1):
        if last + 1 < len(ordered) and ordered[last][0] == ordered[last + 1][0]:
            continue  # groups of equal probability are included or left out together
        if expected[last] <= precision:
            continue
        count = _sample_size(float(expected[last]), int(ends[last]), tests)
        if count:
            numbers = np.random.default_rng([seed, number]).permutation(int(ends[last]))[:count]
            return Sample(
                ordered[last][0], tuple(_pair(ordered, ends, int(i)) for i in numbers), int(ends[last])
            )
    return None


def passes(judged: int, right: int, of: int, precision: float, number: int) -> bool:
    """Return whether a sample certifies the precision: `right` of `judged` pairs, drawn from `of`."""
    if judged >= of:
        return right >= precision * of
    return tail(judged, right, precision) <= delta_of(number)


def _tests(precision: float, delta: float) -> list[tuple[int, int]]:
    """Return sample sizes, and the minimum number of right pairs for each."""
    from scipy.stats import binom

    sizes = range(fewest(precision, delta), MOST + 1, 10)
    needs = [(size, int(binom.isf(delta, size, precision)) + 1) for size in sizes]
    return [(size, least) for size, least in needs if least <= size]


def _sample_size(expected: float, of: int, tests: Sequence[tuple[int, int]]) -> int:
    """Return how many of `of` pairs to judge for a test that probably passes; 0 if there is none."""
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
