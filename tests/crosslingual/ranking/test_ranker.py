"""The ranker's likelihood and gradient, its calibration, and soft competition."""

import numpy as np
import pytest

from benchmarks.support.absent import calibration_error
from linker.scoring.probability.competition import compete, softmax
from linker.scoring.probability.verification import Verifier, names_of
from linker.scoring.ranking.calibrated_ranker import CalibratedRanker, from_json, to_json
from linker.scoring.ranking.fitting import adapt, temperature
from linker.scoring.ranking.linear import LinearRanker, _Objective, fit_ranker
from linker.scoring.ranking.lists import CandidateLists

RNG = np.random.default_rng(2)


def lists(n: int = 200, c: int = 6, f: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Lists whose right candidate is drawn from the model itself; one list in ten has none."""
    x = RNG.normal(size=(n, c, f)).astype(np.float32)
    p = softmax(x @ np.array([2.0, -1.0, 0.5, 0.0]))
    right = np.array([RNG.choice(c, p=row) for row in p])
    right[RNG.random(n) < 0.1] = -1
    return x, right


def test_the_gradient_is_that_of_the_loss() -> None:
    x, right = lists(20)
    objective = _Objective(x, right, 3.0, np.array([0.1, 0.2, 0.0, -0.3]))
    for w in RNG.normal(size=(3, 5)):
        # The scores are float32, hence a wide step and a matching tolerance.
        slopes = [(objective(w + h)[0] - objective(w - h)[0]) / 2e-3 for h in 1e-3 * np.eye(5)]
        np.testing.assert_allclose(slopes, objective(w)[1], rtol=0.01, atol=0.05)


def test_it_learns_what_made_the_lists() -> None:
    x, right = lists(3000)
    ranker = fit_ranker(list("abcd"), x, right, penalty=0.1)
    weights = ranker.weights / ranker.scale
    assert weights[0] > 1.5 and weights[1] < -0.7 and abs(weights[3]) < 0.15
    logits = ranker.logits(x)
    assert logits.shape == (3000, 7)
    np.testing.assert_allclose(softmax(logits).sum(axis=1), 1)


def test_a_heavy_penalty_keeps_the_prior() -> None:
    x, right = lists(50)
    prior = LinearRanker(("b", "a"), np.array([0.5, 0.0]), np.array([2.0, 1.0]), np.array([-1.0, 3.0]), 0.0)
    ranker = fit_ranker(list("abcd"), x, right, penalty=1e9, prior=prior)
    np.testing.assert_allclose(ranker.weights, [3, -1, 0, 0], atol=1e-3)
    assert ranker.centre[1] == 0.5 and ranker.scale[1] == 2.0


def test_standardisation_counts_as_twenty_lists() -> None:
    ranker = LinearRanker(("a",), np.zeros(1), np.ones(1), np.ones(1), 0.0)
    lists = np.repeat(np.array([0.0, 4.0], np.float32), 10).reshape(20, 1, 1)
    there = ranker.restandardise(lists)
    assert there.centre == 1 and there.scale**2 == pytest.approx((4 + 1 + 1 + 1) / 2)
    many = ranker.restandardise(np.tile(lists, (1000, 1, 1)))
    np.testing.assert_allclose([*many.centre, *many.scale], 2, atol=0.01)


def test_only_what_was_learned_elsewhere_takes_on_the_standardisation_of_the_lists() -> None:
    x, right = lists(50)
    ranker = fit_ranker(list("abcd"), x, right)
    names = names_of(ranker)
    verifier = Verifier(names, *(np.ones(len(names) + more) for more in (0, 0, 1, 1)))
    other = CandidateLists(np.arange(50), np.zeros((50, 6), np.int64), 3 * x + 1, ("a", "b", "c", "d"))
    assert adapt(CalibratedRanker(ranker, verifier), other).ranker is ranker
    stranger = CalibratedRanker(ranker, verifier, elsewhere=True)
    there = adapt(stranger, other)
    assert there.ranker.centre == pytest.approx(ranker.restandardise(other.features).centre)
    assert not there.elsewhere


def test_competition_leaves_each_target_about_one_page() -> None:
    logits = np.array([[3.0, 0.0, -5.0], [2.0, 1.9, -5.0]])
    targets = np.array([[7, 8], [7, 8]])
    p = compete(logits, targets)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    # the second page competed with the first, and has an alternative
    assert p[0].argmax() == 0 and p[1].argmax() == 1
    assert p[:, 0].sum() < 1.05
    alone = np.array([[3.0, 0.0, -5.0]])
    np.testing.assert_allclose(compete(alone, targets[:1]), softmax(alone))


def test_temperature_undoes_overconfidence() -> None:
    logits = RNG.normal(size=(4000, 5))
    right = np.array([RNG.choice(5, p=row) for row in softmax(logits)])
    right[right == 4] = -1
    assert temperature(logits * 3, right) == pytest.approx(3, rel=0.1)


def test_calibration_error_of_a_worked_example() -> None:
    p, right = np.array([0.95, 0.95, 0.15, 0.15]), np.array([True, False, False, False])
    assert calibration_error(p, right) == pytest.approx((2 * abs(0.95 - 0.5) + 2 * 0.15) / 4)
    assert calibration_error(np.array([1.0]), np.array([True])) == 0
    # the last two bins are separate, so their errors do not cancel
    neighbours = calibration_error(np.array([0.95, 0.85]), np.array([False, True]))
    assert neighbours == pytest.approx((0.95 + 0.15) / 2)


def test_a_pooled_ranker_survives_json() -> None:
    x, right = lists(50)
    ranker = fit_ranker(list("abcd"), x, right)
    names = names_of(ranker)
    verifier = Verifier(names, *(np.abs(RNG.normal(size=len(names) + more)) for more in (0, 0, 1, 1)))
    back = from_json(to_json(CalibratedRanker(ranker, verifier)))
    np.testing.assert_allclose(back.ranker.logits(x), ranker.logits(x), atol=1e-2)
    for part in ("centre", "scale", "linked", "right"):
        np.testing.assert_allclose(getattr(back.verifier, part), getattr(verifier, part), rtol=1e-4)
    assert back.verifier.names == names
    damages = ("temperature", 0), ("none", float("nan")), ("weights", [1.0]), ("scale", [0.0] * 4)
    for key, value in damages:
        with pytest.raises(ValueError, match="its ranker"):
            from_json({**to_json(CalibratedRanker(ranker, verifier)), key: value})
