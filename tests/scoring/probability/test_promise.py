"""Learn then Test: worked numbers, an exact oracle, and the promise; the share of positive cases."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv, expit, logit

from linker.scoring.probability.fitting import calibration_error
from linker.scoring.probability.promise import DELTA, FEWEST, promise, tail
from linker.scoring.probability.shares import adapt, estimate_share


@pytest.mark.parametrize(
    ("links", "right", "p"), [(29, 29, 0.0471), (46, 45, 0.0480), (61, 59, 0.0491), (500, 462, 0.0393)]
)
def test_links_that_pass(links: int, right: int, p: float) -> None:
    assert tail(links, right, 0.9) == pytest.approx(p, abs=5e-5)
    assert tail(links, right, 0.9) <= DELTA < tail(links, right - 1, 0.9)


@pytest.mark.parametrize(("links", "right", "p"), [(28, 28, 0.0523), (100, 95, 0.0576), (200, 187, 0.0566)])
def test_links_that_fail(links: int, right: int, p: float) -> None:
    assert tail(links, right, 0.9) == pytest.approx(p, abs=5e-5)
    assert tail(links, right, 0.9) > DELTA


@given(st.integers(1, 60), st.data(), st.sampled_from([0.5, 0.8, 0.9, 0.99]))
def test_the_tail_is_the_sum_of_its_terms(links: int, data: st.DataObject, precision: float) -> None:
    right = data.draw(st.integers(0, links))
    terms = [
        math.comb(links, n) * precision**n * (1 - precision) ** (links - n) for n in range(right, links + 1)
    ]
    assert tail(links, right, precision) == pytest.approx(math.fsum(terms), rel=1e-9)


def slow(said: list[float], right: list[bool], precision: float) -> float | None:
    """Return the threshold by walking each of the four sequences by hand."""
    pairs, count = sorted(zip(said, right, strict=True), reverse=True), len(said)
    kept: dict[int, float] = {}
    least = next(n for n in range(1, 1000) if precision**n <= 0.05 / 4)
    for start in (40, round(0.1 * count), round(0.25 * count), round(0.5 * count)):
        size = max(start, least)
        while size <= count:
            threshold = pairs[size - 1][0]
            above = [r for s, r in pairs if s >= threshold]
            if tail(len(above), sum(above), precision) > 0.05 / 4:
                break
            kept[len(above)] = threshold
            size += max(1, round(0.02 * count))
    return kept[max(kept)] if kept else None


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=150), st.sampled_from([0.5, 0.8, 0.9]))
def test_the_threshold_is_the_one_found_by_hand(pairs: list[tuple[int, bool]], precision: float) -> None:
    # Right links score higher, so that a threshold is certified often enough.
    said = [(score + 40 * (score % 8 > 0 or right)) / 100 for score, right in pairs]
    right = [bool(score % 8 or r) for score, r in pairs]
    found = promise(np.array(said), np.array(right, dtype=bool), precision)
    assert (found.threshold if found else None) == slow(said, right, precision)
    if found:
        above = np.array(said) >= found.threshold
        assert (found.links, found.right) == (above.sum(), np.array(right)[above].sum())
        assert found.held == len(said) and found.coverage == above.mean()


def test_few_links_promise_nothing_and_equal_probabilities_are_kept_together() -> None:
    said = np.linspace(1, 0.5, FEWEST)
    assert promise(said, np.ones(FEWEST, dtype=bool), 0.9) is None  # .9 ** 40 = .0148 > .05 / 4
    more = np.linspace(1, 0.5, 42)
    assert promise(more, np.ones(42, dtype=bool), 0.9) is not None  # .9 ** 42 = .0120
    assert promise(np.zeros(0), np.zeros(0, dtype=bool), 0.9) is None
    assert promise(said, np.ones(FEWEST, dtype=bool), 1.0) is None, "no sample shows that all are right"
    found = promise(np.repeat([0.9, 0.4], 60), np.arange(120) < 60, 0.9)
    assert found is not None and (found.threshold, found.links, found.right) == (0.9, 60, 60)


def test_the_promise_holds_in_nearly_all_samples() -> None:
    """P(right | score) = score; the precision above a threshold t is then known: (1 + t) / 2."""
    random, broken, drawn = np.random.default_rng(0), 0, 400
    for _ in range(drawn):
        score = random.random(500)
        found = promise(score, random.random(500) < score, 0.9)
        broken += found is not None and (1 + found.threshold) / 2 < 0.9
    assert broken / drawn <= DELTA


def test_a_sequence_ends_at_its_first_failure() -> None:
    """All 200 links would pass, but each sequence has failed before it reaches them."""
    right = np.ones(200, dtype=bool)
    right[10:35:5] = False
    assert tail(200, 195, 0.9) < DELTA / 4 < tail(100, 95, 0.9)
    assert promise(np.linspace(1, 0.5, 200), right, 0.9) is None
    right[10] = right[15] = right[20] = True
    found = promise(np.linspace(1, 0.5, 200), right, 0.9)
    assert found is not None and found.links == 200


PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=60).map(np.array)


@pytest.mark.parametrize("expected", [0.5, 0.8])
@pytest.mark.parametrize("cases", [1, 5, 200])
def test_each_share_counts_by_its_probability(expected: float, cases: int) -> None:
    """Quadrature against sums over 100,000 equally probable parts of the beta prior."""
    odds = np.random.default_rng(3).normal(-1, 3, cases)
    shares = betaincinv(expected, 1 - expected, (np.arange(100_000) + 0.5) / 100_000)
    shares = np.clip(shares, 1e-12, 1 - 1e-12)
    weights = sum(np.log(shares * expit(e) + (1 - shares) * expit(-e)) for e in odds.tolist())
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    assert estimate_share(odds, expected) == pytest.approx(shares @ weights, abs=1e-4)
    found = adapt(expit(odds + logit(expected)), expected)
    exact = [expit(e + logit(shares)) @ weights for e in odds.tolist()]
    np.testing.assert_allclose(found, exact, atol=1e-4)


def test_worked_shares() -> None:
    """The prior weighs as much as one case."""
    assert estimate_share(np.empty(0)) == pytest.approx(0.5)
    assert estimate_share(np.empty(0), 0.9) == pytest.approx(0.9)
    # Six certain cases, and one that counts as one half: 6.5 of 7.
    assert estimate_share(np.full(6, 30.0)) == pytest.approx(6.5 / 7, abs=1e-5)
    assert estimate_share(np.full(6, -30.0), 0.9) == pytest.approx(0.9 / 7, abs=1e-5)


@pytest.mark.parametrize("expected", [0.05, 0.5, 0.93])
@given(said=st.floats(0, 1))
def test_a_single_case_keeps_the_expected_share(said: float, expected: float) -> None:
    assert adapt(np.array([said]), expected)[0] == pytest.approx(said, abs=1e-6)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_probabilities_are_right_at_another_share(share: float) -> None:
    """Evidence N(1, 2) for positive and N(-1, 2) for other cases has the log odds x; stated at a share of .8."""
    random = np.random.default_rng(0)
    positive = random.random(4000) < share
    evidence = random.normal(np.where(positive, 1, -1), np.sqrt(2))
    said = expit(evidence + logit(0.8))
    assert calibration_error(said, positive) > 0.03
    assert calibration_error(adapt(said, 0.8), positive) < 0.02


@given(PROBABILITIES, st.floats(0.01, 0.99))
def test_the_order_stays_and_certain_ones_are_no_obstacle(said: np.ndarray, share: float) -> None:
    found = adapt(said, share)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found[np.argsort(said)]) >= -1e-12).all()
    turned = adapt(said[::-1], share)[::-1]
    np.testing.assert_allclose(found, turned, atol=1e-6)
