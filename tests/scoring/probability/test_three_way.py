"""P(link) from three kinds of first candidates: right, wrong for a linked text, and wrong for an unlinked text."""

import numpy as np
import pytest
from scipy.special import expit

from indexes.dtypes import BoolArray, Float64Array
from linker.scoring.probability.fitting import calibration_error
from linker.scoring.probability.verification import ThreeWay, Verifier, fit_verifier

NAMES = ("a", "b")
MISSED = 0.3  # share of linked texts whose first candidate is wrong: it looks like that of an unlinked text


def texts(n: int, share: float, seed: int) -> tuple[Float64Array, BoolArray, BoolArray]:
    """Features [n, 2] of first candidates, and whether each text is linked and its first candidate right."""
    rng = np.random.default_rng(seed)
    linked = rng.random(n) < share
    right = linked & (rng.random(n) > MISSED)
    return rng.normal(size=(n, 2)) + np.where(right, 1.5, -1.0)[:, None], linked, right


def both(n: int, seed: int = 0) -> tuple[Float64Array, BoolArray, Float64Array]:
    x, linked, right = texts(2 * n, 0.5, seed)
    return x[linked], right[linked], x[~linked]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_probabilities_are_right_where_one_line_for_linked_texts_is_too_flat(share: float) -> None:
    x, _, right = texts(6000, share, seed=2)
    verifier = ThreeWay.fitted(NAMES, *both(3000))
    assert verifier.share(x) == pytest.approx(share, abs=0.03)
    assert calibration_error(verifier(x, share), right) < 0.02
    if share == 0.5:
        assert calibration_error(fit_verifier(NAMES, *both(3000), penalty=1.0)(x, share), right) > 0.03


def test_the_odds_are_those_of_three_kinds() -> None:
    rng = np.random.default_rng(1)
    verifier = ThreeWay(NAMES, np.zeros(2), np.ones(2), *rng.normal(size=(2, 3)))
    x, share = rng.normal(size=(50, 2)), 0.2
    first, other = (expit(x @ w[:-1] + w[-1]) for w in (verifier.right, verifier.linked))
    unlinked = (1 - first) * (1 - other)
    all_kinds = share * (1 - unlinked) + (1 - share) * unlinked
    np.testing.assert_allclose(verifier(x, share), share * first / all_kinds)
    linked = expit(verifier.odds(x))
    np.testing.assert_allclose(linked, first + (1 - first) * other)
    np.testing.assert_allclose(expit(verifier.right_odds(x)), first / linked)


def test_nothing_becomes_certain_if_all_known_links_are_right() -> None:
    x = np.zeros((4, 2))
    verifier = ThreeWay.fitted(NAMES, x, np.ones(4, bool), x - 0.1)
    assert isinstance(verifier, Verifier)
    assert 0.5 < expit(verifier.right_odds(x)).max() < 0.99
    assert verifier(x, 0.5).max() < 0.95
