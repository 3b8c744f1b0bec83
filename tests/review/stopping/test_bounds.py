"""The arithmetic of stopping against worked numbers and against scipy's distributions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom, nchypergeom_wallenius

from linker.review.stopping import bounds
from linker.review.stopping.rules import least_tail


@pytest.mark.parametrize(
    ("size", "relevant", "drawn", "weight", "p"),
    [(1800, 3, 300, 5, 0.065446), (1800, 3, 300, 10, 0.004390), (500, 2, 50, 2, 0.656390)],
)
def test_worked_urns(size: int, relevant: int, drawn: int, weight: float, p: float) -> None:
    assert bounds.urn_tail(size, relevant, drawn, weight) == pytest.approx(p, abs=5e-7)
    oracle = nchypergeom_wallenius.cdf(0, size, relevant, drawn, weight)
    assert bounds.urn_tail(size, relevant, drawn, weight) == pytest.approx(oracle, rel=1e-6)


@given(st.data())
def test_urns_are_those_of_scipy(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 300))
    relevant, drawn = data.draw(st.integers(1, size - 1)), data.draw(st.integers(1, size - 1))
    weight = data.draw(st.floats(0.5, 30))
    oracle = nchypergeom_wallenius.pmf(0, size, relevant, drawn, weight) if drawn <= size - relevant else 0.0
    assert bounds.urn_tail(size, relevant, drawn, weight) == pytest.approx(oracle, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    ("found", "gaps"),
    [(10, (538, 796, 1532)), (30, (206, 406, 796)), (100, (65, 138, 273)), (300, (23, 50, 104))],
)
def test_worked_gaps(found: int, gaps: tuple[int, ...]) -> None:
    expected = [
        bounds.urn_gap(11_000, bounds.short_of(found, target), 20, 0.05) for target in (0.8, 0.9, 0.95)
    ]
    assert tuple(expected) == gaps


def test_the_gap_is_the_first_that_is_improbable() -> None:
    for size, relevant in [(11_000, 12), (700, 3), (60, 55), (10, 10), (10, 11)]:
        gap = bounds.urn_gap(size, relevant, 20, 0.05)
        assert gap == next(n for n in range(size + 1) if bounds.urn_tail(size, relevant, n, 20) < 0.05)


@pytest.mark.parametrize(
    ("x", "size", "relevant", "drawn", "p"),
    [(0, 1800, 3, 1200, 0.036914), (0, 1800, 3, 300, 0.578511), (1, 9400, 13, 400, 0.896579)],
)
def test_worked_hypergeometric_tails(x: int, size: int, relevant: int, drawn: int, p: float) -> None:
    assert bounds.hypergeometric_tail(x, size, relevant, drawn) == pytest.approx(p, abs=5e-7)


@given(st.data())
def test_hypergeometric_tails_are_those_of_scipy(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5000))
    relevant, drawn = data.draw(st.integers(0, size)), data.draw(st.integers(0, size))
    x = data.draw(st.integers(0, min(40, drawn)))
    oracle = float(hypergeom.cdf(x, size, relevant, drawn))
    assert bounds.hypergeometric_tail(x, size, relevant, drawn) == pytest.approx(oracle, rel=1e-7, abs=1e-12)
    assert math.exp(bounds.log_pmf(x, size, relevant, drawn)) == pytest.approx(
        float(hypergeom.pmf(x, size, relevant, drawn)), rel=1e-7, abs=1e-12
    )


@given(st.lists(st.tuples(*[st.integers(0, 10**6)] * 4), min_size=1, max_size=5))
def test_the_least_tail_is_that_of_scipy(numbers: list[tuple[int, int, int, int]]) -> None:
    urns = []
    for first, second, third, fourth in numbers:
        size = 2 + first % 3000
        relevant, drawn = 1 + second % (size - 1), third % (size + 1)
        low, high = max(0, drawn - size + relevant), min(relevant, drawn)
        urns.append((low + fourth % (high - low + 1), size, relevant, drawn))
    arrays = [np.asarray(column, dtype=np.int64) for column in zip(*urns, strict=True)]
    oracle = min(*(float(hypergeom.cdf(x, size, k, n)) for x, size, k, n in urns), 0.5)
    assert least_tail(*arrays) == pytest.approx(oracle, rel=1e-7, abs=1e-300)


@pytest.mark.parametrize(
    ("size", "sample", "x", "found", "bound", "recall"),
    [
        (11_000, 300, 0, 100, 107, 0.4831), (11_000, 1320, 0, 100, 23, 0.8130),
        (11_000, 300, 1, 100, 171, 0.3727), (2000, 200, 0, 50, 28, 0.6410), (500, 100, 2, 40, 28, 0.6176),
    ],
)  # fmt: skip
def test_worked_audits(size: int, sample: int, x: int, found: int, bound: int, recall: float) -> None:
    assert bounds.most_left(size, sample, x, 0.05) == bound
    assert (found + x) / (found + bound) == pytest.approx(recall, abs=5e-5)


@given(st.data())
def test_most_left_is_the_last_that_is_probable(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 200))
    drawn = data.draw(st.integers(0, size))
    x = data.draw(st.integers(0, min(drawn, 5)))
    possible = range(x, size - drawn + x + 1)
    oracle = max(k for k in possible if k == x or hypergeom.cdf(x, size, k, drawn) > 0.05 - 1e-12)
    assert bounds.most_left(size, drawn, x, 0.05) == oracle


def test_neither_rounding_nor_large_numbers_are_a_danger() -> None:
    # of 16 documents with 12 relevant, two contain none with probability 6 / 120: just .05, so 12 is not excluded
    assert bounds.most_left(16, 2, 0, 0.05) == 12
    assert bounds.urn_tail(10**8, 10, 10**6, 20) == pytest.approx(math.exp(-20 * 10 * 0.01005), rel=0.01)
    assert 0 < bounds.most_left(10**8, 300, 0, 0.05) < 10**6


@pytest.mark.parametrize(
    ("target", "pairs"),
    [
        (0.8, {13: 0, 14: 14, 22: 21, 50: 45}),
        (0.9, {28: 0, 29: 29, 46: 45, 100: 96}),
        (0.95, {58: 0, 59: 59, 93: 92}),
    ],
)
def test_worked_controls(target: float, pairs: dict[int, int]) -> None:
    for controls, j in pairs.items():
        assert bounds.controls_to_reach(controls, target, 0.05) == j
        if j:
            assert binom.cdf(j - 1, controls, target) >= 0.95 > binom.cdf(j - 2, controls, target)


def test_targets_are_the_decimals_that_were_written() -> None:
    for found in range(400):
        for hundredths in (5, 7, 55, 70, 80, 90, 95, 99, 100):
            target = hundredths / 100
            assert bounds.short_of(found, target) == found * 100 // hundredths + 1 - found
            assert bounds.needed(found, target) == -(-found * hundredths // 100)
            # with this many left the target is missed, with one fewer it is not
            total = found + bounds.short_of(found, target)
            assert found < bounds.needed(total, target)
            assert total == 1 or found >= bounds.needed(total - 1, target)
