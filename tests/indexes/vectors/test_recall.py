"""Recall against cost: measured on held-out vectors, used to choose a setting, stored, written and plotted."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from indexes.interface import DamagedError, IndexesError, Matrix
from indexes.kinds import AUTO
from indexes.rows import Rows
from indexes.store import manifest
from indexes.vectors import faiss_index as vectors
from indexes.vectors import kinds, recall
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.hnsw import Hnsw
from indexes.vectors.pq import PqScan
from indexes.vectors.recall import SearchCost
from linker.base.errors import InputError
from linker.engine import Engine, building
from linker.engine.recall import tune_recall
from tests.helpers import HashEncoder, linker, write_corpus

DIM, ROWS = 16, 3000


def cluster(rows: int, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).standard_normal((40, DIM))
    return (centres[rng.integers(40, size=rows)] + 0.7 * rng.standard_normal((rows, DIM))).astype(np.float32)


def filled(kind: str, **options: dict[str, float]) -> FaissIndex:
    index = FaissIndex(DIM, kind, exact_below=500, settings=options.get("settings"))
    index.add([f"d{i}" for i in range(ROWS)], cluster(ROWS))
    return index


@pytest.mark.parametrize("kind", ["hnsw", "pq", "ivfpq"])
def test_the_curve_rises_and_settings_stay(kind: str) -> None:
    index = filled(kind)
    assert index.generator is not None
    before = dict(index.generator.settings)
    curve = recall.measure(index, cluster(60, seed=1), 10)
    assert index.generator.settings == before
    found = [point.recall for point in curve.points]
    assert found[-1] == max(found) > 0.97
    assert all(0 <= share <= 1 for share in found)
    assert min(point.ms for point in curve.points) > 0 < curve.exact_ms
    assert (curve.k, curve.queries) == (10, 60)


def test_recall_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle: the share of the exact top ten, per query, that the index returns under the same settings."""
    monkeypatch.setattr(PqScan, "GRID", ({"refine": 0.0},))
    index, exact, queries = filled("pq", settings={"refine": 0.0}), filled("flat"), cluster(50, seed=1)
    monkeypatch.setattr(PqScan, "_fetched", lambda self, fetch: fetch)
    shares = [
        len({*a.ids} & {*b.ids}) / 10
        for a, b in zip(index.search(queries, 10), exact.search(queries, 10), strict=True)
    ]
    (point,) = recall.measure(index, queries, 10).points
    assert point.recall == pytest.approx(np.mean(shares))
    assert point.recall < 1


def test_a_held_out_document_does_not_find_itself() -> None:
    index = filled("hnsw")
    queries, rows = index.draw(3, 0)
    np.testing.assert_array_equal(queries, index.vectors[rows])
    others = recall._without(np.array([[5, 1, 2], [3, 50, 4], [7, 8, 9]]), np.array([5, 50, 500]), 2)
    assert others.tolist() == [[1, 2], [3, 4], [7, 8]]
    assert recall.measure(index, queries, 10, rows).points[-1].recall > 0.9


def test_the_cheapest_that_reaches_is_chosen() -> None:
    points = [
        SearchCost({"ef": e}, r, ms)
        for e, r, ms in ((1, 0.8, 1.0), (2, 0.97, 3.0), (3, 0.96, 2.0), (4, 0.99, 9.0))
    ]
    assert [recall.choose(points, target).settings["ef"] for target in (0.5, 0.95, 0.98, 1.0)] == [1, 3, 4, 4]


def test_an_exact_index_has_nothing_to_tune() -> None:
    small = FaissIndex(DIM, AUTO)
    small.add(["a"], cluster(1))
    for index in (filled("flat"), small):
        with pytest.raises(IndexesError, match="searches exactly"):
            recall.measure(index, cluster(3), 5)
    for target in (0.0, 1.1):
        with pytest.raises(InputError, match="greater than 0 and at most 1"):
            tune_recall(filled("flat"), target, 5)
    with pytest.raises(InputError, match="no queries"):
        tune_recall(filled("flat"), 0.9, 5, cluster(0))


def test_auto_is_flat_then_chooses_by_size(tmp_path: Path) -> None:
    assert [kinds.kind_by_size(n) for n in (200_000, 999_999, 1_000_000)] == ["pq", "pq", "ivfpq"]
    assert FaissIndex(DIM, AUTO)._exact_below == kinds.AUTO_EXACT
    index = filled(AUTO, settings={"refine": 5.0})
    assert index.save_graph(tmp_path / "graph")
    assert isinstance(index.generator, PqScan)
    again = FaissIndex(DIM, AUTO, exact_below=500, settings={"refine": 5.0})
    rows = Rows()
    rows.restore([f"d{i}" for i in range(ROWS)], np.empty(0, dtype=np.int64))
    again.restore(rows, index.vectors)
    again.load_graph(tmp_path / "graph")
    assert isinstance(again.generator, PqScan)
    assert again.generator.settings == {"refine": 5.0}
    queries = cluster(20, seed=1)
    np.testing.assert_array_equal(again.search_rows(queries, 5)[0], index.search_rows(queries, 5)[0])


def test_the_kind_of_a_file(tmp_path: Path) -> None:
    for kind in kinds.GENERATORS:
        filled(kind).save_graph(tmp_path / kind)
        assert kinds.kind_of(tmp_path / kind) == kind
    (tmp_path / "x").write_bytes(b"xxxx")
    for name in ("x", "absent"):
        with pytest.raises(DamagedError, match=name):
            kinds.kind_of(tmp_path / name)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An HNSW index of only 400 documents that is nevertheless approximate."""
    monkeypatch.setattr(vectors, "EXACT_BELOW", 100)
    monkeypatch.setattr(Hnsw, "cost", lambda self, fetch, rows: 0.0)
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    monkeypatch.setattr("linker.encoders.opened.load_encoder", lambda name, **_: HashEncoder())
    corpus = write_corpus(tmp_path / "corpus.jsonl", 400)
    linker("index", "build", corpus, "--out", tmp_path / "i", "--encoder", "hash", "--vectors", "hnsw")
    return tmp_path / "i"


def test_the_command(directory: Path, tmp_path: Path) -> None:
    run = linker("index", "tune", directory, "--recall", "0.95", "--held-out", "40", "-k", "5", "--json")
    report = json.loads(run.stdout)
    assert report["reached"]
    assert report["held_out"]
    assert (report["k"], report["queries"], len(report["points"])) == (5, 40, len(Hnsw.GRID))
    assert json.loads((tmp_path / "i.recall.json").read_text()) == report
    assert (tmp_path / "i.recall.png").read_bytes().startswith(b"\x89PNG")
    assert manifest.load(directory).search == {"vectors": report["chosen"]["settings"]}
    side = Engine.open(directory).collection.hybrid.vectors
    assert isinstance(side, FaissIndex)
    assert side.generator is not None
    assert side.generator.settings == report["chosen"]["settings"]
    # the mode is still chosen as before
    assert len(Engine.open(directory).search("banel dedom", 3).hits[0]) == 3


def test_queries_from_a_file_and_tuning_the_mode_keep_each_other(directory: Path, tmp_path: Path) -> None:
    queries, qrels = tmp_path / "q.tsv", tmp_path / "qrels.tsv"
    queries.write_text("1\tbanel dedom kivik\n2\tponel rasen\n", encoding="utf-8")
    qrels.write_text("1 0 d1 1\n2 0 d2 1\n", encoding="utf-8")
    curve = tmp_path / "c.json"
    done = linker("index", "tune", directory, "--recall", "1", "--queries", queries, "--curve", curve)
    assert "chosen" in done.stdout
    assert not json.loads(curve.read_text())["held_out"]
    linker("index", "tune", directory, "--queries", queries, "--qrels", qrels)
    assert {"vectors", "mode", "fusion"} <= set(manifest.load(directory).search)
    linker("index", "tune", directory, "--recall", "0.5", "--curve", curve)
    assert {"vectors", "mode", "fusion"} <= set(manifest.load(directory).search)


def test_the_command_names_gaps(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--recall" in linker("index", "tune", directory, check=2).stderr
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = linker("index", "tune", directory, "--recall", "0.9", "--held-out", "20")
    assert "no picture: it needs the extra 'plot'" in done.stderr
    assert not (tmp_path / "i.recall.png").exists()
    flat = write_corpus(tmp_path / "few.jsonl", 30)
    linker("index", "build", flat, "--out", tmp_path / "few", "--encoder", "hash")
    assert "searches exactly" in linker("index", "tune", tmp_path / "few", "--recall", "0.9", check=1).stderr
    linker("index", "build", flat, "--out", tmp_path / "none")
    with pytest.raises(IndexesError, match="has no vectors to tune"):
        Engine.open(tmp_path / "none").tune_recall(0.9)


def test_a_target_out_of_reach_is_said(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "_share", lambda hits, truth: 0.5)
    run = linker("index", "tune", directory, "--recall", "0.9", "--held-out", "20")
    assert "no setting finds 0.9" in run.stderr
