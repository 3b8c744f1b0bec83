"""Pages without a counterpart: the share of linked pages, probabilities at any share, and kept promises."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.corpora.dictionaries import Dictionary
from linker.crosslingual.learned_methods import by_auto
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.auto import Solution, solve
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.task import Task
from linker.scoring.probability.fitting import calibration_error
from linker.scoring.probability.promise import best_f1
from linker.scoring.probability.verification import (
    Verifier,
    first_candidates,
    fit_calibrated,
    fit_verifier,
)
from linker.scoring.ranking.fitting import FittedRanker, Held
from linker.scoring.ranking.linear import LinearRanker
from linker.scoring.ranking.lists import CandidateLists, Chances
from tests.crosslingual.synthetic import Twin, twin

pytestmark = pytest.mark.usefixtures("divided_once")
NAMES = ("a", "b")


def pages(n: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features [n, 2], whether linked, and whether right: linked pages have higher values, correct ones more extreme
    values."""
    rng = np.random.default_rng(seed)
    linked = rng.random(n) < share
    x = rng.normal(size=(n, 2)) + np.where(linked, 1.0, -1.0)[:, None] * np.array([1.0, 0.3])
    right = linked & (rng.random(n) < expit(2 + 2 * x[:, 1]))
    return x, linked, right


def fitted(n: int = 3000) -> Verifier:
    x, linked, right = pages(2 * n, 0.5, seed=1)
    return fit_verifier(NAMES, x[linked], right[linked], x[~linked], penalty=1.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_the_share_is_found_and_the_probabilities_are_right_at_any_share(share: float) -> None:
    verifier = fitted()
    x, _, right = pages(5000, share, seed=2)
    assert verifier.share(x) == pytest.approx(share, abs=0.025)
    p = verifier(x, verifier.share(x))
    assert calibration_error(p, right) < 0.025
    assert calibration_error(verifier(x, 0.5), right) > 0.05 or share == 0.5


def test_log_odds_that_a_ridge_made_too_small_are_rescaled() -> None:
    x, linked, right = pages(1500, 0.5, seed=4)
    folds = [np.arange(i, 700, 3) for i in range(3)]
    parts = (
        folds, [x[linked][f] for f in folds], [right[linked][f] for f in folds],
        [x[~linked][f] for f in folds],
    )  # fmt: skip
    start = Verifier(NAMES, np.zeros(2), np.full(2, 8.0), np.zeros(3), np.zeros(3))  # the ridge takes effect
    final, checks = fit_calibrated(NAMES, *parts, prior=start)
    plain = fit_verifier(NAMES, *map(np.concatenate, parts[1:]), prior=start)
    more, has, _ = pages(4000, 0.5, seed=5)
    assert (
        calibration_error(expit(final.odds(more)), has)
        < 0.04
        < calibration_error(expit(plain.odds(more)), has)
    )
    assert len(checks) == 3
    for check in checks:
        assert np.abs(check.linked - final.linked).max() < 0.3 * np.abs(final.linked).max()


def test_a_heavy_penalty_keeps_the_prior_and_its_scale() -> None:
    prior = Verifier(
        ("b", "z"), np.array([0.2, 9]), np.array([2.0, 9]), np.array([0.7, 9, -1]), np.array([0.1, 9, 2])
    )
    x, linked, right = pages(200, 0.5)
    verifier = fit_verifier(NAMES, x[linked], right[linked], x[~linked], prior=prior, penalty=1e9)
    np.testing.assert_allclose(verifier.linked[:2], [0, 0.7], atol=1e-3)
    np.testing.assert_allclose(verifier.right[:2], [0, 0.1], atol=1e-3)
    assert (verifier.centre[1], verifier.scale[1]) == (0.2, 2.0)


def test_nothing_becomes_certain_from_a_few_pages_that_are_all_right() -> None:
    x = np.zeros((4, 2))
    verifier = fit_verifier(NAMES, x, np.ones(4, bool), x - 0.1)
    assert expit(verifier.right_odds(x)).max() < 0.95


def test_features_of_a_worked_list() -> None:
    ranker = LinearRanker(("f",), np.zeros(1), np.ones(1), np.ones(1), 0.0)
    lists = CandidateLists(
        np.array([0]), np.array([[5, 6, 7]]), np.array([[[1.0], [3.0], [2.0]]], np.float32), ("f",)
    )
    logits = np.array([[1.0, 3.0, 2.0, 0.0]])
    won = np.array([[0.1, 0.2, 0.6, 0.1]])  # competition made the third target the most probable
    (row,) = first_candidates(ranker, lists.features, logits, won)
    rest = np.log(np.exp(1) + np.exp(3))
    np.testing.assert_allclose(row, [2, 2 - 3, 2 - rest, logit(0.6), 2])


def test_a_mixture_has_its_share_and_uses_no_list_twice() -> None:
    linked, alone = np.arange(100.0), 1000 + np.arange(100.0)
    held = Held(linked, np.ones(100, bool), alone)
    for share, sizes in ((1.0, (100, 0)), (0.5, (100, 100)), (0.1, (11, 100)), (0.0, (0, 100))):
        p, right = held.mixture(share)
        assert (int((p < 1000).sum()), int((p >= 1000).sum())) == sizes
        assert len(np.unique(p)) == len(p)
        assert (right == (p < 1000)).all()


def promised(share: float, wrong: float, options: Options) -> tuple[float, dict[str, object]]:
    rng = np.random.default_rng(6)
    right = rng.random(400) >= wrong
    pages = np.arange(400)

    def chances(p: Float64Array) -> Chances:
        return Chances(pages, 1 * ~right[:, None], np.stack([p, 1 - p], axis=1), 0 * pages)

    held = chances(np.where(right, 0.95, 0.3)), chances(np.full(400, 0.2))
    model = FittedRanker(None, np.empty((0, 1)), share, held_out=held)  # type: ignore[arg-type]  # no model is used
    return model.least_probability(options.min_probability, options.precision, options.expected_linked)


def test_a_promise_is_tested_at_the_share_of_linked_pages() -> None:
    threshold, record = promised(0.5, 0.1, Options(precision=0.9))
    assert threshold == 0.95
    assert record["linked_share"] == {"estimated": 0.5}
    promise = record["promise"]
    assert isinstance(promise, dict) and promise["right"] == promise["links"] > 300
    # with few linked pages, orphans dominate: nothing below .95 is certain, and there are too few links to prove it
    threshold, record = promised(0.1, 0.1, Options(precision=0.9, expected_linked=0.1))
    assert threshold == np.inf and record["promise"] == {"precision": 0.9, "threshold": None}
    assert record["linked_share"] == {"expected": 0.1}


def test_the_threshold_of_the_best_expected_f1() -> None:
    # two links of three pages exist: F1 is 2 · .9 / (1 + 2), then 2 · 1.5 / (2 + 2), then 2 · 1.8 / (3 + 2)
    assert best_f1(np.array([0.3, 0.9, 0.6]), 2 / 3) == {"threshold": 0.6, "expected": 0.75}
    assert best_f1(np.empty(0), 0.5) == {"threshold": 0.0, "expected": 0.0}


def test_without_a_promise_the_probability_alone_decides() -> None:
    assert promised(0.5, 0.1, Options(min_probability=0.4))[0] == 0.4
    assert promised(0.5, 0.1, Options(min_probability=0.99, precision=0.9))[0] == 0.99


@pytest.fixture(scope="module")
def corpus() -> Twin:
    return twin(pages=260)


def halved(corpus: Twin, known: int) -> tuple[Twin, set[int]]:
    """The corpus without the counterparts of every second unknown page, and these pages' rows."""
    alone = set(range(known, len(corpus.source), 2))
    gone = {t for s, t in corpus.links.tolist() if s in alone}
    left = [t for t in range(len(corpus.target)) if t not in gone]
    target = Pages(
        tuple(corpus.target.ids[t] for t in left),
        tuple(corpus.target.texts[t] for t in left),
        corpus.target.language,
    )
    place = {t: i for i, t in enumerate(left)}
    links = np.array([(s, place[t]) for s, t in corpus.links.tolist() if t in place], np.int64)
    return replace(corpus, target=target, links=links), alone


@pytest.fixture(scope="module")
def half(corpus: Twin) -> tuple[Twin, set[int]]:
    return halved(corpus, 120)


@pytest.fixture(scope="module")
def solution(half: tuple[Twin, set[int]]) -> Solution:
    world = half[0]
    return solve(AllEvidence(world.source, world.target), world.links[:120])


def test_pages_without_a_counterpart_are_noticed(half: tuple[Twin, set[int]], solution: Solution) -> None:
    world, alone = half
    rows, targets, p = solution.best()
    gold = dict(world.links.tolist())
    right = np.array([gold.get(row) == target for row, target in zip(rows.tolist(), targets, strict=True)])
    orphan = np.array([row in alone for row in rows.tolist()])
    assert solution.fitted.share == pytest.approx(0.5, abs=0.1)
    assert p[orphan].mean() < 0.2 < 0.6 < p[~orphan].mean()
    assert right[p >= 0.9].mean() >= 0.9
    assert calibration_error(p, right) < 0.1
    np.testing.assert_allclose(solution.probabilities.sum(axis=1), 1)


def test_a_promised_precision_holds_and_is_recorded(half: tuple[Twin, set[int]]) -> None:
    world, _ = half
    task = Task(world.source, world.target, train=world.links[:120], options=Options(precision=0.8))
    links = link(task, "auto")
    promise = links.metadata["promise"]
    assert promise["precision"] == 0.8 and 0 < promise["threshold"] < 1
    gold = dict(world.links.tolist())
    first = links.candidates.targets[:, 0]
    kept = np.flatnonzero(first >= 0)
    assert len(kept) > 30
    # The promise applies to the population of which these pages are a sample.
    error = np.sqrt(0.8 * 0.2 / len(kept))
    assert np.mean([gold.get(row) == first[row] for row in kept.tolist()]) >= 0.8 - 2 * error
    assert (links.candidates.scores[kept, 0] >= promise["threshold"] - 1e-6).all()


def test_a_promise_needs_known_links(corpus: Twin) -> None:
    words = (Dictionary(Path("made.tsv"), "tsv", corpus.dictionary),)
    task = Task(corpus.source, corpus.target, words, options=Options(precision=0.9))
    with pytest.raises(InputError, match="`precision` tests its threshold on known links: pass at least 20"):
        by_auto(task)
    with pytest.raises(InputError, match="`precision` is for the method auto or cascade"):
        link(task, "dictionary")
    with pytest.raises(InputError, match="`expected_linked` is for the method auto or cascade"):
        link(replace(task, options=Options(expected_linked=0.5)), "dictionary")


def test_wrong_links_are_noticed_and_teach_no_probabilities(corpus: Twin) -> None:
    known = corpus.links[:120].copy()
    wrong = np.arange(0, 120, 6)
    known[wrong, 1] = np.setdiff1d(np.arange(len(corpus.target)), corpus.links[:, 1])
    solution = solve(AllEvidence(corpus.source, corpus.target), known)
    found = set(solution.fitted.contradicted.tolist())
    assert len(found & set(wrong.tolist())) > 8
    assert len(found - set(wrong.tolist())) < 2
    gold = dict(corpus.links.tolist())
    rows, targets, p = solution.best()
    right = np.array([gold[row] == target for row, target in zip(rows.tolist(), targets, strict=True)])
    assert abs(p.mean() - right.mean()) < 0.1


def test_correct_links_are_not_contradicted(solution: Solution) -> None:
    assert not len(solution.fitted.contradicted)


def test_a_page_is_judged_by_verifiers_that_saw_it_in_no_division() -> None:
    n, half = 80, np.arange(80) < 40
    x, _, right = pages(n, 1.0)
    alone = pages(n, 0.0, seed=1)[0]
    folds = [np.flatnonzero(chosen) for chosen in (half, ~half, np.arange(n) % 2 == 0, np.arange(n) % 2 == 1)]
    # Only pages of the first fold differ, as the second division sees them.
    strange = np.where(half[:, None], x[::-1] * 5, x)

    def first_check(later: np.ndarray) -> np.ndarray:
        seen = [x[folds[0]], x[folds[1]], later[folds[2]], later[folds[3]]]
        verdicts = [right[rows] for rows in folds]
        _, checks = fit_calibrated(NAMES, folds, seen, verdicts, [alone[rows] for rows in folds], divisions=2)
        weights = checks[0].linked[:-1]
        return np.asarray(weights / np.linalg.norm(weights))  # Platt's slope depends on the judged pages, too

    np.testing.assert_allclose(first_check(strange), first_check(x), rtol=1e-6)
