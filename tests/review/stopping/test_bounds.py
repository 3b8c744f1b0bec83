"""The arithmetic of stopping against worked numbers and against scipy's distributions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom, hypergeom, nchypergeom_wallenius

from linker.review.stopping import bounds, price
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
    wanted = [bounds.urn_gap(11_000, bounds.short_of(found, target), 20, 0.05) for target in (0.8, 0.9, 0.95)]
    assert tuple(wanted) == gaps


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
    ("size", "drawn", "x", "found", "left", "recall"),
    [
        (11_000, 300, 0, 100, 107, 0.4831),
        (11_000, 1320, 0, 100, 23, 0.8130),
        (11_000, 300, 1, 100, 171, 0.3727),
        (2000, 200, 0, 50, 28, 0.6410),
        (500, 100, 2, 40, 28, 0.6176),
    ],
)
def test_worked_audits(size: int, drawn: int, x: int, found: int, left: int, recall: float) -> None:
    assert bounds.most_left(size, drawn, x, 0.05) == left
    assert (found + x) / (found + left) == pytest.approx(recall, abs=5e-5)


@given(st.data())
def test_most_left_is_the_last_that_is_probable(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 200))
    drawn = data.draw(st.integers(0, size))
    x = data.draw(st.integers(0, min(drawn, 5)))
    possible = range(x, size - drawn + x + 1)
    oracle = max(k for k in possible if k == x or hypergeom.cdf(x, size, k, drawn) > 0.05 - 1e-12)
    assert bounds.most_left(size, drawn, x, 0.05) == oracle


def test_rounding_does_not_decide_a_tie() -> None:
    # of 16 documents with 12 relevant ones, two hold none with probability 6 / 120: just .05, so 12 is not excluded
    assert bounds.most_left(16, 2, 0, 0.05) == 12
    assert bounds.most_left_anytime(25, 24, 0, 0.05) == 0


@pytest.mark.parametrize(
    ("size", "relevant", "drawn", "x", "e"),
    [
        (11_000, 26, 1875, 0, 20.8453),
        (11_000, 26, 1000, 0, 2.6023),
        (5000, 50, 400, 0, 21.9704),
        (2000, 100, 75, 0, 31.8901),
    ],
)
def test_worked_ratios(size: int, relevant: int, drawn: int, x: int, e: float) -> None:
    assert math.exp(bounds.log_ratio(size, relevant, drawn, x)) == pytest.approx(e, abs=5e-5)


@given(st.data())
def test_evidence_is_the_ratio_of_two_probabilities_of_the_sample(data: st.DataObject) -> None:
    """By Bayes' rule: what a bet predicts over what this K predicts; an independent way to the same number."""
    size = data.draw(st.integers(2, 2000))
    drawn = data.draw(st.integers(1, size))
    x = data.draw(st.integers(0, min(drawn, 10)))
    relevant = data.draw(st.integers(x, size - drawn + x))
    oracle = betabinom.logpmf(x, drawn, *bounds.PRIOR) - hypergeom.logpmf(x, size, relevant, drawn)
    assert bounds.log_ratio(size, relevant, drawn, x) == pytest.approx(oracle, abs=1e-6)
    bet = bounds.STAKE * (x == 0) + (1 - bounds.STAKE) * betabinom.pmf(x, drawn, *bounds.PRIOR)
    mixed = math.log(bet) - hypergeom.logpmf(x, size, relevant, drawn)
    assert bounds.log_evidence(size, relevant, drawn, x) == pytest.approx(mixed, abs=1e-6)


@given(st.integers(60, 20_000), st.integers(15, 400), st.sampled_from([0.8, 0.9, 0.95]))
def test_looking_at_any_time_costs_at_most_a_tenth_more_without_a_find(
    unread: int, found: int, target: float
) -> None:
    exact = price(unread, found, target)
    assert exact <= price(unread, found, target, anytime=True) <= 1.1 * exact + 1


@pytest.mark.parametrize(("size", "relevant"), [(40, 1), (120, 5), (300, 30)])
def test_evidence_looked_at_after_each_document_seldom_errs(size: int, relevant: int) -> None:
    """In at most .05 of samples, e ever reaches 20."""
    line, reviews, generator = math.log(20), 4000, np.random.default_rng(0)
    reached = [
        [drawn >= x and bounds.log_evidence(size, relevant, drawn, x) >= line for x in range(relevant + 1)]
        for drawn in range(size + 1)
    ]  # fmt: skip
    wrong = 0
    for _ in range(reviews):
        hits = np.cumsum(generator.permutation(size) < relevant).tolist()
        wrong += any(
            reached[drawn][x] for drawn, x in enumerate(hits, start=1) if x * size < relevant * drawn
        )
    assert wrong / reviews <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / reviews)
    assert wrong


@given(st.data())
def test_most_left_at_any_time_is_where_the_evidence_begins(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 200))
    drawn = data.draw(st.integers(1, size))
    x = data.draw(st.integers(0, min(drawn, 6)))
    possible = range(x, size - drawn + x + 1)
    oracle = max(k for k in possible if bounds.log_evidence(size, k, drawn, x) < math.log(20))
    assert bounds.most_left_anytime(size, drawn, x, 0.05) == oracle


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
            # with so many left the target is missed, with one less it is not
            total = found + bounds.short_of(found, target)
            assert found < bounds.needed(total, target)
            assert total == 1 or found >= bounds.needed(total - 1, target)


def test_a_hundred_million_documents_are_no_danger() -> None:
    assert bounds.urn_tail(10**8, 10, 10**6, 20) == pytest.approx(math.exp(-20 * 10 * 0.01005), rel=0.01)
    assert 0 < bounds.most_left(10**8, 300, 0, 0.05) < 10**6
