"""Precision and recall at every threshold, against counting; a calibration from verdicts that agree."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.store.records import Manifest
from indexes.writer import Writer
from linker.base.errors import InputError
from linker.cli.commands.calibrating import agreed_qrels, calibrate_review
from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from linker.review import curve
from linker.review.curve import points, scores
from linker.review.interface import Judgement, Seed
from linker.review.ledger import Ledger
from tests.helpers import linker
from tests.scoring.ranking.synthetic import documents, judged_queries

SCORE = st.one_of(st.just(math.nan), st.integers(0, 5).map(float))


@given(st.lists(st.tuples(SCORE, st.booleans()), max_size=20))
def test_each_point_is_what_counting_gives(judged: list[tuple[float, bool]]) -> None:
    found = points([score for score, _ in judged], [hit for _, hit in judged])
    whole = sum(hit for _, hit in judged)
    thresholds = sorted({score for score, _ in judged if not math.isnan(score)}, reverse=True)
    assert [p.threshold for p in found] == (thresholds if whole else [])
    for point in found:
        above = [hit for score, hit in judged if score >= point.threshold]
        assert (point.judged, point.relevant) == (len(above), sum(above))
        assert point.precision == pytest.approx(sum(above) / len(above))
        assert point.recall == pytest.approx(sum(above) / whole)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """An index of documents that share progressively fewer words with the seeds below."""
    folder = tmp_path_factory.mktemp("curve")
    texts = [" ".join(["rain", "vote", "river", "debate", "street"][i % 3 : 2 + i % 4]) for i in range(24)]
    lines = (json.dumps({"id": f"d{i}", "text": f"{text} number {i}"}) for i, text in enumerate(texts))
    (folder / "d.jsonl").write_text("\n".join(lines), encoding="utf-8")
    build([folder / "d.jsonl"], folder / "index", BuildOptions())
    return Engine.open(folder / "index")


SEEDS = [
    Seed(f"s{i}", text) for i, text in enumerate(("rain in the street", "vote and debate", "river rain"))
]


@pytest.mark.parametrize("by_document", [False, True])
def test_scores_are_those_of_a_search_with_each_seed_alone(
    engine: Engine, by_document: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve, "BATCH", 2)
    decided = {
        ("s0", "d1"): True, ("s1", "d1"): False, ("s1", "d4"): True, ("s2", "d6"): True, ("gone", "d8"): True,
    }  # fmt: skip
    by_seed = {}
    for seed in SEEDS:
        (hits,) = engine.search(seed.text, len(engine)).hits
        by_seed[seed.id] = dict(zip(hits.ids, hits.scores.tolist(), strict=True))
    expected = [
        max((s.get(id_, -1.0) for s in by_seed.values()), default=-1.0)
        if by_document
        else by_seed.get(seed, {}).get(id_, -1.0)
        for seed, id_ in decided
    ]
    values, calibrated = scores(engine, SEEDS, decided, by_document=by_document)
    assert [-1.0 if math.isnan(v) else v for v in values.tolist()] == pytest.approx(expected)
    assert not calibrated


def test_many_seeds_are_not_searched_deeply_and_idle_ones_not_at_all(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    search = Engine.search

    def watched(self: Engine, texts: list[str], k: int) -> object:
        asked.append((len(texts), k))
        return search(self, texts, k)

    monkeypatch.setattr(Engine, "search", watched)
    monkeypatch.setattr(curve, "TOTAL", 12)
    monkeypatch.setattr(curve, "LEAST", 2)
    scores(engine, SEEDS, {("s0", "d1"): True, ("s2", "d6"): True}, by_document=True)
    assert asked == [(2, 6)]


def test_only_what_reviewers_agree_on_counts() -> None:
    said = [
        Judgement("s", "a", "relevant", "ana"), Judgement("s", "a", "relevant", "ben"),
        Judgement("s", "b", "relevant", "ana"), Judgement("s", "b", "not", "ben"),
        Judgement("s", "c", "maybe"), Judgement("s", "d", "skip"), Judgement("t", "a", "not"),
    ]  # fmt: skip
    assert agreed_qrels(said) == {"s": {"a": 1.0}, "t": {"a": 0.0}}


def test_a_review_calibrates_its_index(tmp_path: Path) -> None:
    index, file = tmp_path / "index", tmp_path / "review.sqlite"
    with Writer.create(index, Manifest()) as writer:
        writer.add(documents(), None)
        writer.commit()
    engine, ledger = Engine(index), Ledger(file)
    queries, judged = judged_queries()
    with pytest.raises(InputError, match="no query is judged"):
        calibrate_review(engine, ledger)
    ledger.put_seeds([Seed(q.id, q.text) for q in queries])
    answer = engine.search([q.text for q in queries], 3)
    ledger.add_all(
        Judgement(q.id, id_, "relevant" if id_ in judged[q.id] else "not")
        for q, hits in zip(queries, answer.hits, strict=True)
        for id_ in hits.ids
    )
    assert calibrate_review(engine, ledger).about["fitted"] == 3 * len(queries) / 2
    told = json.loads(linker("calibrate", index, "--ledger", file, "--json").stdout)
    assert told["queries"] == len(queries) and told["auc"] > 0.7
    assert Engine(index).search(queries[0].text).probabilities is not None
    missing = linker("calibrate", index, "--ledger", tmp_path / "none.sqlite", check=1)
    assert "none.sqlite" in missing.stderr and not (tmp_path / "none.sqlite").exists()
    assert "either" in linker("calibrate", index, check=2).stderr
