"""Training a ranker, storing it in the index, searching with it and explaining it; mismatches are refused."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.interface import DamagedError
from indexes.store.records import BuildRecord, EncoderRecord, Manifest
from indexes.writer import Writer
from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.scoring.ranking import folder, searching
from linker.scoring.ranking.candidates import PoolSettings
from linker.scoring.ranking.training import Training
from tests.helpers import WORDS, HashEncoder, linker, write_json_lines
from tests.scoring.ranking.synthetic import COUNT, documents, judged_queries

pytest.importorskip("lightgbm")


def make(directory: Path, encoder: HashEncoder | None = None, positions: bool = True) -> Path:
    record = EncoderRecord("hash", encoder.fingerprint, encoder.dim) if encoder else None
    manifest = Manifest(
        "flat" if encoder else "none", encoder=record, positions=positions, build=BuildRecord()
    )
    with Writer.create(directory, manifest) as writer:
        for start in range(0, COUNT, 64):
            batch = documents()[start : start + 64]
            writer.add(batch, encoder.encode([d.text for d in batch]) if encoder else None)
            writer.commit()
    return directory


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rank")
    make(root / "index")
    asked, judged = judged_queries()
    write_json_lines(root / "queries.jsonl", ({"_id": q.id, "text": q.text} for q in asked))
    lines = [f"{q} 0 {d} 1\n" for q, docs in judged.items() for d in docs]
    (root / "qrels").write_text("".join(lines))
    (root / "few").write_text("".join(lines[:90]))
    return root


def train(made: Path, name: str, *more: str) -> dict[str, Any]:
    """Train a ranker by the command into the folder `name`, and return its figures."""
    files = ("--queries", made / "queries.jsonl", "--qrels", made / "qrels")
    done = linker("rank", "train", made / "index", *files, "--json", *more, "--out", made / name)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


@pytest.fixture(scope="module")
def trained(made: Path) -> dict[str, Any]:
    return train(
        made, "model", "--dev-queries", str(made / "queries.jsonl"), "--dev-qrels", str(made / "few")
    )


@pytest.fixture(scope="module")
def model(made: Path, trained: dict[str, Any]) -> Path:
    return made / "model"


def test_training_reports_what_it_gained(made: Path, trained: dict[str, Any], model: Path) -> None:
    assert trained["found"] <= trained["queries"] == COUNT and trained.pop("dev")["queries"] == 90
    assert trained["mrr"] > trained["mrr_before"]
    assert train(made, "two") == trained, "the same seed gave another ranker"
    assert (model / "model.txt").read_bytes() == (made / "two" / "model.txt").read_bytes()
    assert train(made, "three", "--seed", "1")["ranker"] != trained["ranker"]


def test_search_ranks_and_says_so(made: Path, model: Path) -> None:
    asked, judged = judged_queries()
    engine, ranker = Engine(made / "index"), folder.load(model)
    answer = engine.search([q.text for q in asked], 30, reranker=ranker)
    assert answer.reranked and answer.ranker == ranker.fingerprint and len(answer.no_match) == COUNT
    for hits in answer.hits:
        assert len(set(hits.ids)) == len(hits) == 30
        assert (np.diff(hits.scores) <= 0).all()
        assert 0 <= hits.scores[0] <= 1 and hits.scores[-1] < 0  # the last hits come from the first stage
    first = [hits.ids[0] in judged[q.id] for q, hits in zip(asked, answer.hits, strict=True)]
    assert sum(first) > 0.9 * COUNT
    text = linker("search", made / "index", "--rerank", model, "--text", asked[0].text, "--json").stdout
    shown = json.loads(text)
    assert shown["ranker"] == ranker.fingerprint and 0 <= shown["no_match"] <= 1
    assert [h["id"] for h in shown["hits"]] == list(answer.hits[0].ids[:10])
    single = engine.search(asked[0].text, 3, where=["date=2020-01-05"], reranker=ranker)
    assert {engine.document(i).metadata["date"] for i in single.hits[0].ids} == {"2020-01-05"}


def test_stored_in_the_index_it_is_the_default(made: Path, model: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(made / "index", index)
    before = linker("search", index, "--text", "banel deras", "--json").stdout
    engine = Engine(index)
    engine.store_ranker(model)
    assert engine.ranker is not None and engine.search("banel deras").ranker == engine.ranker.fingerprint
    assert engine.search("banel deras", mode="bm25").ranker == ""
    assert json.loads(linker("search", index, "--text", "banel deras", "--json").stdout)["reranked"]
    assert linker("search", index, "--text", "banel deras", "--no-rerank", "--json").stdout == before
    # It survives changes of the index, and another ranker replaces it.
    engine.delete(["d0", "d3"])
    with Writer.open(index) as writer:
        writer.compact()
    assert Engine(index).search("banel deras").reranked
    files = ("--queries", made / "queries.jsonl", "--qrels", made / "qrels")
    stored = json.loads(linker("rank", "train", index, *files, "--into", "--seed", "5", "--json").stdout)
    assert Engine(index).search("banel deras").ranker == stored["ranker"]
    assert len(list((index / "ranker").iterdir())) == 1
    assert "as they were written" in linker("index", "verify", index).stdout
    file = next((index / "ranker").rglob("model.txt"))
    file.write_text(file.read_text().replace("leaf_value=", "leaf_value= ", 1))
    with pytest.raises(DamagedError, match=r"model\.txt"):
        Engine(index)


def test_ranker_that_older_generation_keeps_is_stored_again(made: Path, model: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "index", tmp_path / "index")
    other = tmp_path / "other"
    shutil.copytree(model, other)
    (other / "README.md").write_text("another card")
    with Writer.open(tmp_path / "index", 3):
        pass
    engine = Engine(tmp_path / "index")
    for folder_ in (model, other, model):
        engine.store_ranker(folder_)
        assert engine.search("banel deras").reranked
    assert len(list((tmp_path / "index" / "ranker").iterdir())) == 2
    assert "as they were written" in linker("index", "verify", tmp_path / "index").stdout


def test_many_queries_tell_how_many_have_a_match(
    made: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nonsense queries get no match if there are many at once; the order and shares of P(link) stay."""
    monkeypatch.setattr(searching, "BATCH", 16)
    engine, ranker = Engine(made / "index"), folder.load(model)
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(WORDS, 5)) for _ in range(60)]
    assert ranker.calibration.linked is not None and len(texts) >= searching.FEWEST
    parts = [engine.search(texts[i : i + 30], 5, reranker=ranker) for i in (0, 30)]
    few = [number for part in parts for number in part.no_match]
    together = engine.search(texts, 5, reranker=ranker)
    assert np.mean(together.no_match) > np.mean(few)
    for number, hits in enumerate([hits for part in parts for hits in part.hits]):
        found = together.hits[number]
        assert found.ids == hits.ids
        times = (1 - together.no_match[number]) / (1 - few[number])
        np.testing.assert_allclose(found.scores, hits.scores * times, rtol=1e-5)


def test_a_ranker_of_before_keeps_its_probabilities(made: Path, model: Path, tmp_path: Path) -> None:
    """Without the share of queries with a match, nothing can be adapted; an impossible share is refused."""
    shutil.copytree(model, tmp_path / "old")
    path = tmp_path / "old" / "config.json"
    config = json.loads(path.read_text())
    assert 0 < config["calibration"].pop("linked") < 1
    path.write_text(json.dumps(config))
    ranker, texts = folder.load(tmp_path / "old"), [q.text for q in judged_queries()[0]]
    engine = Engine(made / "index")
    alone = engine.search(texts[0], reranker=ranker).no_match
    assert engine.search(texts, reranker=ranker).no_match[0] == pytest.approx(alone[0])
    for wrong in (0, 1, float("nan"), "0.5"):
        config["calibration"]["linked"] = wrong
        path.write_text(json.dumps(config))
        with pytest.raises(InputError, match="describe a ranker of this version"):
            folder.load(tmp_path / "old")


def test_positions_change_nothing_nor_does_a_query_without_candidates_warn(
    made: Path, model: Path, tmp_path: Path
) -> None:
    make(tmp_path / "index", positions=False)
    asked, _ = judged_queries()
    texts, ranker = [q.text for q in asked[:20]], folder.load(model)
    stored, computed = (Engine(d / "index").search(texts, 5, reranker=ranker) for d in (made, tmp_path))
    for a, b in zip(stored.hits, computed.hits, strict=True):
        assert a.ids == b.ids
        np.testing.assert_array_equal(a.scores, b.scores)
    answer = Engine(made / "index").search("x", reranker=folder.load(model))
    assert len(answer.hits[0]) == 0
    assert answer.no_match == (1.0,)


def test_explain_shows_what_moved_a_candidate(made: Path, model: Path) -> None:
    asked, judged = judged_queries()
    text = asked[0].text
    shown = json.loads(
        linker("rank", "explain", made / "index", "--model", model, "--query", text, "--json").stdout
    )
    assert shown["candidates"][0]["id"] in judged[asked[0].id]
    assert len(shown["candidates"]) == 3
    parts = [abs(p["contribution"]) for p in shown["candidates"][0]["features"]]
    assert parts == sorted(parts, reverse=True) and len(parts) <= 8
    for candidate in shown["candidates"]:
        moved = sum(p["contribution"] for p in candidate["features"])
        assert candidate["start"] + moved + candidate["rest"] == pytest.approx(candidate["score"], abs=1e-6)
    assert shown["candidates"][0]["link"] > shown["candidates"][1]["link"]
    plain = linker("rank", "explain", made / "index", "--model", model, "--query", text).stdout
    assert plain.startswith("no relevant document") and "all other features" in plain
    failed = linker("rank", "explain", made / "index", "--query", text, check=1)
    assert failed.returncode == 1 and "linker rank train" in failed.stderr


def test_vectors_and_dates_are_features(tmp_path: Path) -> None:
    encoder = HashEncoder()
    make(tmp_path / "index", encoder)
    engine = Engine(tmp_path / "index", encoder=encoder)
    asked, judged = judged_queries()
    settings = PoolSettings(date_field="date", direction="near")
    trained = engine.train_ranker(asked, judged, settings)
    assert {"cosine", "days_apart"} <= set(trained.ranker.names)
    ranker = folder.save(trained.ranker, trained.text, tmp_path / "model")
    assert ranker.encoder == encoder.fingerprint
    assert engine.search(asked[0].text, reranker=ranker).mode == "hybrid"
    make(tmp_path / "other", HashEncoder(name="other"))
    with pytest.raises(InputError, match="another encoder"):
        Engine(tmp_path / "other", encoder=HashEncoder(name="other")).search("x", reranker=ranker)
    without = engine.train_ranker(asked, judged, encoder=False)
    assert "cosine" not in without.ranker.names and without.ranker.encoder == ""


def test_too_few_links_are_refused_and_a_folder_of_something_else_is_not_replaced(
    made: Path, tmp_path: Path
) -> None:
    arguments = ("--queries", made / "queries.jsonl", "--qrels", made / "few", "--out", made / "none")
    failed = linker("rank", "train", made / "index", *arguments, "--date-field", "date", check=1)
    assert failed.returncode == 1 and "a ranker needs 100" in failed.stderr
    assert not (made / "none").exists()
    (tmp_path / "file").write_text("mine")
    arguments = ("--queries", made / "queries.jsonl", "--qrels", made / "qrels", "--out", tmp_path)
    failed = linker("rank", "train", made / "index", *arguments, check=1)
    assert failed.returncode == 1 and (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("names", ["coverage"]), ("names", []), ("pool", {"bm25": 10**9}),
        ("pool", {"direction": "sideways"}), ("pool", {"unknown": 1}), ("calibration", {"slope": 1}),
        ("format", "linker-ranker-9"), ("trees", "0" * 32), ("about", 3),
    ],
)  # fmt: skip
def test_a_damaged_ranker_is_refused(key: str, value: object, model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps({**settings, key: value}))
    with pytest.raises(InputError, match="model"):
        folder.load(tmp_path / "model")


@pytest.mark.parametrize(
    "change", [{"slope": 1e300}, {"scale": 0}, {"weights": "nan"}, {"inputs": ["unheard"]}]
)
def test_a_hostile_calibration_is_refused(change: dict[str, object], model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    settings = json.loads(config.read_text())
    for key, value in change.items():
        old = settings["calibration"][key]
        settings["calibration"][key] = (
            value if not isinstance(old, list) or key == "inputs" else [value] * len(old)
        )
    config.write_text(json.dumps(settings))
    with pytest.raises(InputError, match="model"):
        folder.load(tmp_path / "model")


def test_a_ranker_that_is_behind_is_stored_only_by_force(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made / "index", tmp_path / "index")
    train = Engine.train_ranker

    def behind(self: Engine, *arguments: Any, **options: Any) -> Training:
        return dataclasses.replace(train(self, *arguments, **options), mrr=0.5, mrr_before=0.6)

    monkeypatch.setattr(Engine, "train_ranker", behind)
    arguments = ("--queries", made / "queries.jsonl", "--qrels", made / "few", "--into")
    failed = linker("rank", "train", tmp_path / "index", *arguments, check=1)
    assert "(MRR 0.6000 → 0.5000" in failed.stderr and "--force" in failed.stderr
    assert Engine(tmp_path / "index").ranker is None
    linker("rank", "train", tmp_path / "index", *arguments, "--force")
    assert Engine(tmp_path / "index").ranker is not None
