"""The share of positive cases, and probabilities for it, against a search over all shares and worked numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from linker.scoring.probability.measures import calibration_error
from linker.scoring.probability.shares import EXPECTED, adapted, estimate_share

PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=60).map(np.array)


@pytest.mark.parametrize("expected", [0.5, 0.9])
def test_the_share_is_the_most_likely_one(expected: float) -> None:
    """EM against a search over all shares; cases with the expected share are added as a prior."""
    odds = np.random.default_rng(3).normal(-1, 3, 200)
    shares = np.linspace(0.001, 0.999, 999)
    weights = np.log(shares[:, None] * expit(odds) + (1 - shares[:, None]) * expit(-odds)).sum(axis=1)
    prior = EXPECTED * (expected * np.log(shares) + (1 - expected) * np.log(1 - shares))
    assert estimate_share(odds, expected) == pytest.approx(shares[(weights + prior).argmax()], abs=0.002)


def test_worked_shares() -> None:
    assert estimate_share(np.empty(0)) == 0.5
    assert estimate_share(np.empty(0), 0.9) == pytest.approx(0.9)
    # Six certain cases, and two that count as one: 7 of 8.
    assert estimate_share(np.full(6, 30.0)) == pytest.approx(7 / 8, abs=1e-5)
    assert estimate_share(np.full(6, -30.0)) == pytest.approx(1 / 8, abs=1e-5)


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
    assert (np.diff(found[np.argsort(said)]) >= 0).all()
    turned = adapted(said[::-1], share)[::-1]
    np.testing.assert_allclose(found, turned, atol=1e-6)
