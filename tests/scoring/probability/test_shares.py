"""The share of positive cases, and probabilities for it, against integrals over all shares and worked numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv, expit, logit

from linker.scoring.probability.fitting import calibration_error
from linker.scoring.probability.shares import adapted, estimate_share

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
    found = adapted(expit(odds + logit(expected)), expected)
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
    assert adapted(np.array([said]), expected)[0] == pytest.approx(said, abs=1e-6)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_probabilities_are_right_at_another_share(share: float) -> None:
    """Evidence N(1, 2) for positive and N(-1, 2) for other cases has the log odds x; stated at a share of .8."""
    random = np.random.default_rng(0)
    positive = random.random(4000) < share
    evidence = random.normal(np.where(positive, 1, -1), np.sqrt(2))
    said = expit(evidence + logit(0.8))
    assert calibration_error(said, positive) > 0.03
    assert calibration_error(adapted(said, 0.8), positive) < 0.02


@given(PROBABILITIES, st.floats(0.01, 0.99))
def test_the_order_stays_and_certain_ones_are_no_obstacle(said: np.ndarray, share: float) -> None:
    found = adapted(said, share)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found[np.argsort(said)]) >= -1e-12).all()
    turned = adapted(said[::-1], share)[::-1]
    np.testing.assert_allclose(found, turned, atol=1e-6)
