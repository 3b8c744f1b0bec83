"""The learning order: what it puts first, what it is trained on, and that only the judgements matter."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.dtypes import Float32Array
from linker.engine.engine import Engine
from linker.review.interface import Judgement, Seed, Verdict
from linker.review.learning import FeedbackOrder
from linker.review.learning.feedback import FIRST
from linker.review.learning.model import QUICK, LearnerSettings, balanced, fit
from linker.review.population import Population
from linker.review.session import Review
from linker.review.settings import Settings
from linker.scoring.probability import logistic
from tests.review.memory_ledger import MemoryLedger, engine_of
from tests.review.test_session import read


@pytest.fixture(scope="module", params=[True, False], ids=["vectors", "text alone"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return engine_of(tmp_path_factory.mktemp("feedback") / "index", vectors=request.param)


pytest.importorskip("sklearn")
SEED = Seed("s1", "", document="flood0")


def order_of(engine: Engine, *seeds: Seed, seed: int = 0) -> FeedbackOrder:
    population = Population(engine.collection.rows, seeds, Settings())
    return FeedbackOrder(engine, seeds, population, seed=seed)


def handed(order: FeedbackOrder, count: int) -> list[str]:
    """Judge the next documents by their story, and return them."""
    shown = []
    for _ in range(count):
        candidate = order.next()
        if candidate is None:
            break
        shown.append(candidate.id)
        order.tell(Judgement("s1", candidate.id, "relevant" if candidate.id.startswith("flood") else "not"))
    return shown


@pytest.mark.parametrize(
    "seed", [SEED, Seed("s1", "rain river water and mud streets")], ids=["a document", "a text"]
)
def test_it_finds_the_story_first_and_then_everything_else_once(engine: Engine, seed: Seed) -> None:
    shown = handed(order_of(engine, seed), 100)
    first = [id_ for id_ in shown[:22] if id_.startswith("flood")]
    assert len(first) >= 18
    assert len(shown) == len(set(shown)) == 60 - bool(seed.document)


def test_without_anything_relevant_the_order_is_random_and_judgements_suffice_without_any_seed(
    engine: Engine,
) -> None:
    orders = [[c.id for c in iter(order_of(engine, seed=seed).next, None)] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(engine.collection.rows.ids)
    order = order_of(engine)
    for number in range(3):
        order.tell(Judgement("", f"vote{number}", "relevant"))
        order.tell(Judgement("", f"match{number}", "not"))
    first = [order.next() for _ in range(15)]
    assert sum(c is not None and c.id.startswith("vote") for c in first) >= 13
    assert not {c.id for c in first if c} & {f"{s}{n}" for s in ("vote", "match") for n in range(3)}


def test_the_same_judgements_lead_to_the_same_order_live_or_told_later(engine: Engine) -> None:
    whole, first = order_of(engine, SEED), order_of(engine, SEED)
    shown = handed(whole, 50)
    assert handed(first, 43) == shown[:43]
    later = order_of(engine, SEED)
    later.prepare()  # a model prepared in advance changes nothing
    for id_ in shown[:43]:
        later.tell(Judgement("s1", id_, "relevant" if id_.startswith("flood") else "not"))
    assert handed(later, 7) == shown[43:]
    first.restart()
    assert handed(first, 50) == shown


def test_a_review_with_feedback_resumes_exactly(engine: Engine) -> None:
    whole, halves = MemoryLedger([SEED]), MemoryLedger([SEED])
    shown = read(Review(engine, whole), 40)
    first = read(Review(engine, halves), 26)
    assert first + read(Review(engine, halves), 14) == shown
    assert len({j.model for j in whole.judgements()}) == 1


def test_maybe_and_skip_teach_nothing_and_presumed_negatives_end_with_enough_real_ones(
    engine: Engine,
) -> None:
    order, other = order_of(engine, SEED), order_of(engine, SEED)
    order.tell(Judgement("s1", "vote0", "maybe"))
    order.tell(Judgement("s1", "vote1", "skip"))
    for told in (order, other):
        told.tell(Judgement("s1", "flood1", "relevant"))
        told.tell(Judgement("s1", "gone from the index", "relevant"))
    ids = [c.id for c in iter(order.next, None)]
    assert not {"vote0", "vote1", "flood0", "flood1"} & set(ids)
    assert len(order._judged()) == len(other._judged()) == 1
    order = order_of(engine, SEED)
    order._settings = LearnerSettings(negatives=10)
    assert len(order._presumed()) == 10
    for number in range(9):
        order.tell(Judgement("s1", f"vote{number}", "not"))
    assert all(e.weight == 0.1 and not e.relevant for e in order._presumed())
    order.tell(Judgement("s1", "vote9", "not"))
    assert order._presumed() == []


def test_it_is_trained_when_reads_have_grown_by_a_twentieth(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []

    def counted(*arguments: Any, **options: Any) -> Float32Array:
        trained.append(len(order._labels))
        return fit(*arguments, **options)

    monkeypatch.setattr("linker.review.learning.feedback.fit", counted)
    order = order_of(engine, SEED)
    handed(order, 55)
    assert trained == [*range(40), *range(40, 56, 2)]


@pytest.mark.parametrize("rows", [40, 300])
def test_the_logistic_regression_is_that_of_scikit_learn(rows: int) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(rows)
    vectors = generator.normal(size=(rows, 64)) / 8
    labels = vectors[:, 0] + generator.normal(size=rows) / 20 > 0.05
    weights = np.where(labels, 9.8, 1.0)
    expected = linear_model.LogisticRegression(C=5.0).fit(vectors, labels, sample_weight=weights).coef_[0]
    found = logistic.fit(vectors, labels, 1 / 5.0, weights=weights, options=QUICK)
    np.testing.assert_allclose(found[:-1], expected, atol=1e-6)


def test_weights_are_by_class_counts() -> None:
    labels = np.array([True, False, True, False, False])
    weights = balanced(labels, np.array([1.0, 1.0, 1.0, 0.1, 0.9]), 9.8)
    assert weights.mean() == pytest.approx(1)
    assert weights[labels].sum() / weights[~labels].sum() == pytest.approx(9.8)
    assert weights[0] == weights[2]
    assert weights[3] / weights[1] == pytest.approx(0.1)


@pytest.mark.parametrize("helpful", [True, False])
def test_vectors_take_part_only_where_held_out_judgements_are_told_apart_better(
    helpful: bool, tmp_path: Path
) -> None:
    """The even documents are relevant, which the text does not show: the vectors do, or are noise."""
    engine = engine_of(tmp_path / "index")
    order = order_of(engine, seed=1)
    even = np.array([engine.document(id_).metadata["even"] for id_ in engine.collection.rows.ids])
    vectors = np.stack([even, ~even], axis=1).astype(np.float32)
    if not helpful:
        vectors = np.random.default_rng(0).permutation(vectors)
    order._examples.vectors, order._examples.mean = vectors, vectors.mean(axis=0, dtype=np.float64)
    used = []
    for row in np.random.default_rng(1).permutation(60)[:40].tolist():
        verdict: Verdict = "relevant" if even[row] else "not"
        order.tell(Judgement("s1", engine.collection.rows.ids[row], verdict))
        order.next()
        used.append(order._uses_vectors())
    assert not any(used[: FIRST - 1])
    assert used[FIRST - 1 :] == [helpful] * (41 - FIRST)
