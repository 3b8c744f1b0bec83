"""Features against a slow oracle, the fitted model, measures, the drift test, and truncated results."""

import math

import numpy as np
import pytest

from indexes.hybrid import Answer
from indexes.interface import Filter, Hits
from indexes.store.records import EncoderRecord, Manifest
from indexes.writer import Writer
from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.scoring.probability import cutting, drift, features, logistic
from linker.scoring.probability.features import NAMES, TEXT_NAMES, Describer
from linker.scoring.probability.fitting import auc, brier, brier_gain, calibration_error, noise_floor
from linker.scoring.probability.promise import Promise
from tests.helpers import HashEncoder
from tests.scoring.ranking.synthetic import documents, judged_queries


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    directory, encoder = tmp_path_factory.mktemp("probability") / "index", HashEncoder()
    record = EncoderRecord("hash", encoder.fingerprint, encoder.dim)
    with Writer.create(directory, Manifest("flat", encoder=record)) as writer:
        writer.add(documents(), encoder.encode([d.text for d in documents()]))
        writer.commit()
    made = Engine(directory, encoder=encoder)
    made.delete(["d7"])
    return made


def slow(engine: Engine, text: str, id_: str, where: Filter | None) -> dict[str, float]:
    """Return the features of a document from complete rankings of single retrievers."""
    everything = len(engine)
    (words,) = engine.search(text, everything, mode="bm25", where=where).hits
    (near,) = engine.search(text, everything, mode="dense", where=where).hits
    scores, cosines = (dict(zip(h.ids, h.scores.tolist(), strict=True)) for h in (words, near))
    top = [scores[i] for i in words.ids[:100]]
    score = scores[id_] if id_ in words.ids[:100] else min(top)
    other = max([s for i, s in scores.items() if i != id_], default=0.0)
    mean = sum(top) / len(top)
    spread = math.sqrt(sum((s - mean) ** 2 for s in top) / len(top))
    rank = near.ids.index(id_) if id_ in near.ids[:100] else 100
    return {
        "bm25": score, "share": score / top[0], "margin": score - other, "ratio": (score - other) / top[0],
        "z": (score - mean) / spread, "length": math.log(1 + len(text)), "cosine": cosines[id_],
        "cosine_margin": cosines[id_] - max(c for i, c in cosines.items() if i != id_),
        "agreement": (words.ids[0] == id_) + (near.ids[0] == id_), "dense_rank": math.log(1 + rank),
    }  # fmt: skip


@pytest.mark.parametrize(
    "where", [None, Filter.parse(["date=2020-01-05", "date=2020-01-06", "date=2020-01-07"])]
)
def test_features_are_those_of_complete_rankings(engine: Engine, where: Filter | None) -> None:
    texts = [q.text for q in judged_queries()[0][:12]]
    answer = engine.search(texts, 5, where=where)
    rows = np.array([[*engine.collection.rows.locate(hits.ids), -1] for hits in answer.hits])
    if where is None:  # a document that neither retriever ranks high
        rows[:, -1] = engine.collection.rows.locate(["d100"])
    found = Describer(engine.collection, engine.embed).describe(texts, rows, where)
    assert found.shape == (12, 6, len(NAMES))
    for number, text in enumerate(texts):
        for place, row in enumerate(rows[number]):
            if row < 0:
                assert not found[number, place].any()
                continue
            expected = slow(engine, text, engine.collection.rows.ids[row], where)
            np.testing.assert_allclose(
                found[number, place], [expected[n] for n in NAMES], rtol=1e-4, atol=1e-5
            )
    plain = Describer(engine.collection, None)
    assert plain.names == TEXT_NAMES
    np.testing.assert_array_equal(plain.describe(texts, rows, where), found[:, :, : len(TEXT_NAMES)])


def test_parts_are_described_as_the_whole_and_so_is_a_text_without_known_words(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [q.text for q in judged_queries()[0][:9]]
    rows = np.arange(18).reshape(9, 2)
    whole = Describer(engine.collection, engine.embed).describe(texts, rows)
    monkeypatch.setattr(features, "MOST_PAIRS", 7)
    np.testing.assert_allclose(
        Describer(engine.collection, engine.embed).describe(texts, rows), whole, atol=1e-6
    )
    rows = np.array([[3, -1]])
    found = Describer(engine.collection, engine.embed).describe(["zzz"], rows)
    assert np.isfinite(found).all() and found[0, 0, :5].tolist() == [0, 0, 0, 0, 0]
    assert Describer(engine.collection, None).describe([], np.zeros((0, 3), dtype=np.int64)).shape == (
        0,
        3,
        6,
    )


def test_the_fit_is_a_minimum_and_finds_the_weights_that_made_the_data() -> None:
    random = np.random.default_rng(0)
    z, true = random.standard_normal((20_000, 3)), np.array([1.5, -1.0, 0.0, 0.5])
    positive = random.random(20_000) < 1 / (1 + np.exp(-(z @ true[:3] + true[3])))
    weights = logistic.fit(z, positive)
    np.testing.assert_allclose(weights, true, atol=0.08)
    said = 1 / (1 + np.exp(-(z @ weights[:3] + weights[3])))
    np.testing.assert_allclose(z.T @ (said - positive) + weights[:3], 0, atol=0.2)
    assert np.abs(logistic.fit(z, positive, ridge=1e6)[:3]).max() < 0.05


def test_measures_of_known_cases() -> None:
    said, right = np.repeat([0.2, 0.8], 50), np.tile(np.arange(10) < 2, 10)
    right[50:] = ~right[50:]
    assert calibration_error(said, right) == pytest.approx(0)
    assert calibration_error(np.full(100, 0.5), right, 1) == pytest.approx(0)
    assert calibration_error(np.full(100, 0.9), right, 1) == pytest.approx(0.4)
    assert brier(said, right) == pytest.approx(0.16) and brier_gain(said, right) == pytest.approx(0.36)
    # the base rate: a small error, but no gain
    assert brier_gain(np.full(100, 0.5), right) == pytest.approx(0)
    assert 0 < noise_floor(said) < 0.1
    scores = np.array([3.0, 1, 2, 2, 0])
    wins = [float(a > b) + (a == b) / 2 for a in (3, 2, 0) for b in (1, 2)]
    assert auc(scores, np.array([True, False, True, False, True])) == pytest.approx(np.mean(wins))
    assert math.isnan(auc(scores, np.ones(5, dtype=bool)))


def test_drift_warns_of_other_scores_only() -> None:
    random = np.random.default_rng(1)
    seen = {"bm25": random.standard_normal(500), "margin": random.random(500)}
    names = ("bm25", "margin")

    def batch(shift: float, size: int = 60) -> str:
        now = np.stack([random.standard_normal(size), random.random(size) + shift], axis=1)
        return drift.warning(seen, now, names)

    alarms = sum(bool(batch(0)) for _ in range(400))
    assert alarms <= 400 * drift.FALSE_ALARMS * 2
    assert "margin" in batch(0.5) and batch(0.5, drift.FEWEST - 1) == ""


def test_the_distance_is_that_of_two_samples() -> None:
    from scipy.stats import ks_2samp

    random = np.random.default_rng(2)
    for first, second in ((40, 70), (100, 100)):
        a, b = random.integers(0, 9, first).astype(float), random.integers(2, 9, second).astype(float)
        expected = ks_2samp(a, b, method="asymp")
        assert drift.distance(a, b) == pytest.approx(expected.statistic)
        assert drift.p_value(a, b) == pytest.approx(expected.pvalue, rel=0.5, abs=1e-3)


def answer() -> Answer:
    several = Hits(
        ("a", "b", "c"), np.array([3, 2, 1], np.float32), probabilities=np.array([0.6, 0.9, np.nan])
    )
    one = Hits(("d",), np.array([1], np.float32), probabilities=np.array([0.95]))
    return Answer([several, one], "bm25", calibration="x")


def test_cuts() -> None:
    kept = cutting.by_probability(answer(), 0.9)
    assert [h.ids for h in kept.hits] == [("b",), ("d",)]
    assert kept.probabilities is not None and [p.tolist() for p in kept.probabilities] == [[0.9], [0.95]]
    assert [h.ids for h in cutting.by_score(answer(), 2).hits] == [("a", "b"), ()]
    promised = cutting.by_promise(answer(), Promise(0.9, 0.9, 50, 50, 60))
    assert [h.ids for h in promised.hits] == [(), ("d",)], "a promise is about first hits only"
    assert [h.ids for h in cutting.by_promise(answer(), None).hits] == [(), ()]
    with pytest.raises(InputError, match="linker calibrate"):
        cutting.by_probability(Answer(answer().hits, "bm25"), 0.5)
