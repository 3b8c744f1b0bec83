import datetime
import functools
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes import stored_vectors
from indexes.fusion import Fusion, fuse
from indexes.hybrid import HybridIndex, Mode, SearchSettings, Unavailable
from indexes.interface import (
    BackendUnavailableError,
    BadDocumentError,
    BadFilterError,
    BadVectorError,
    Document,
    DuplicateIdError,
    EncoderMismatchError,
    IndexesError,
    MissingExtraError,
    UnknownIdError,
)
from indexes.rows import Rows
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import Writer
from linker.base.errors import LinkerError
from linker.corpora import Query
from linker.engine import Engine, building
from linker.engine.intake import Intake
from linker.engine.options import BuildOptions
from tests.contract.exact import ExactIndex
from tests.helpers import HashEncoder, make_engine, write_corpus

DOCUMENTS = [
    Document("a", "rain floods valencia", metadata={"lang": "en"}),
    Document("b", "voters elect parliament", "Portugal", {"lang": "en"}),
    Document("c", "volcano erupts in iceland", metadata={"lang": "de"}),
    Document("d", "parliament debates rain", metadata={"lang": "de"}),
]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return make_engine(tmp_path / "i", DOCUMENTS)


def test_a_build_encodes_on_the_gpu_if_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Ray, the GPUs belong to its workers: this process only asks the model for its name and dimension."""
    asked: list[bool] = []

    def load(_name: str, *, gpu: bool, **_: object) -> HashEncoder:
        asked.append(gpu)
        return HashEncoder()

    monkeypatch.setattr(building, "load_encoder", load)
    (tmp_path / "corpus.jsonl").write_text('{"id": "a", "text": "rain"}\n', encoding="utf-8")
    building.build([tmp_path / "corpus.jsonl"], tmp_path / "i", BuildOptions(encoder="hash"))
    assert asked == [True]
    building._encoder(BuildOptions(encoder="hash", engine="ray", worker_gpus=1))
    assert asked == [True, False]


def found(engine: Engine, text: str, mode: Mode | None = None, **options: Any) -> list[str]:
    return list(engine.search(text, mode=mode, **options).hits[0].ids)


def test_all_modes_find_and_a_change_shows_on_both_sides(engine: Engine) -> None:
    modes: tuple[Mode, ...] = ("bm25", "dense", "hybrid")
    for mode in modes:
        assert found(engine, "voters elect parliament", mode)[0] == "b"
    engine.add([Document("b", "a volcano in portugal")], replace=True)
    engine.delete(["a"])
    assert len(engine) == 3
    assert "a" not in engine
    for mode in modes:
        assert found(engine, "a volcano in portugal", mode)[0] == "b"
        assert "a" not in found(engine, "rain floods valencia", mode)
    assert engine.document("b") == Document("b", "a volcano in portugal")
    reopened = Engine(engine.directory, encoder=HashEncoder())
    for mode in modes:
        assert found(reopened, "rain volcano parliament", mode) == found(
            engine, "rain volcano parliament", mode
        )


def test_changes_are_all_or_nothing(engine: Engine) -> None:
    generation = engine.collection.manifest.generation
    with pytest.raises(DuplicateIdError, match="'c'"):
        engine.add([Document("new", "x"), Document("c", "y")])
    with pytest.raises(UnknownIdError, match="'zzz'"):
        engine.delete(["a", "zzz"])
    assert Engine(engine.directory).collection.manifest.generation == generation
    assert len(Engine(engine.directory)) == 4


def test_a_filter_may_be_a_string_a_list_or_a_mapping(engine: Engine) -> None:
    engine.add([Document("dated", "rain", metadata={"day": "2020-01-02", "n": 3})])
    assert engine.fields == ("day", "lang", "n")
    for where in ("day>=2020", ["n<4", "day<=2020-01"], {"day": {">": "2020-01-01"}, "n": [2, 3]}, "n=1|3"):
        assert found(engine, "rain", where=where, mode="hybrid") == ["dated"]
    assert "dated" not in found(engine, "rain", where="n!=3", mode="dense")
    assert engine.filter(None) is None
    for unknown in ("dai=2020-01-02", {"dai": {"!=": 1}}, ["lang=de", "dai>2020"]):
        with pytest.raises(BadFilterError, match="no document has the field 'dai': did you mean 'day'"):
            engine.search("rain", where=unknown)


def test_hybrid_is_the_fusion_of_its_sides(engine: Engine) -> None:
    queries = ["rain parliament", "volcano", ""]
    hybrid = engine.collection.hybrid
    assert hybrid.text
    assert hybrid.vectors
    sides = [
        hybrid.text.search_rows(queries, 100),
        hybrid.vectors.search_rows(HashEncoder().encode(queries), 100),
    ]
    rows, scores = fuse(sides, hybrid.settings.fusion, 3)
    for hits, row, score in zip(engine.search(queries, 3, mode="hybrid").hits, rows, scores, strict=True):
        assert [engine.collection.rows.ids[r] for r in row if r >= 0] == list(hits.ids)
        assert score[: len(hits)].tolist() == hits.scores.tolist()


def test_another_encoder_is_refused(engine: Engine) -> None:
    stranger = Engine(engine.directory, encoder=HashEncoder(name="other"))
    with pytest.raises(EncoderMismatchError, match="is not the one"):
        stranger.search("rain")
    assert found(stranger, "rain", "bm25")


class Broken(HashEncoder):
    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        raise BackendUnavailableError("the model's server is down")


def test_a_side_that_is_down_is_named_and_the_other_answers(engine: Engine) -> None:
    lame = Engine(engine.directory, encoder=Broken())
    answer = lame.search("rain floods", mode="hybrid")
    assert answer.degraded == "dense unavailable: the model's server is down"
    assert answer.mode == "bm25"
    assert answer.hits[0].ids == engine.search("rain floods", mode="bm25").hits[0].ids
    strict = Engine(engine.directory, encoder=Broken(), on_failure="fail")
    with pytest.raises(BackendUnavailableError, match="dense unavailable"):
        strict.search("rain floods", mode="hybrid")
    with pytest.raises(BackendUnavailableError, match="server is down"):
        lame.search("rain floods", mode="dense")


def test_both_sides_are_asked_at_once_if_one_waits_for_a_server() -> None:
    rows, vectors, both = Rows(), ExactIndex(16), threading.Barrier(2, timeout=30)
    vectors.add(["a", "b"], HashEncoder().encode(["one two", "three"]))
    rows.append(["a", "b"])

    class Waiting:
        def search_rows(self, *_: Any) -> Any:
            both.wait()
            return vectors.search_rows(HashEncoder().encode(["three"]), 2)

    def embed(texts: Sequence[str]) -> Any:
        both.wait()  # in sequence, this would not run while the text retriever waits
        return HashEncoder().encode(texts)

    index = HybridIndex(rows, vectors, Waiting(), SearchSettings("hybrid"), at_once=True)
    assert index.search(["three"], 1, embed=embed).hits[0].ids == ("b",)


def test_the_text_side_down_and_both_down() -> None:
    rows, vectors = Rows(), ExactIndex(16)
    vectors.add(["a", "b"], HashEncoder().encode(["one two", "three"]))
    rows.append(["a", "b"])
    down = Unavailable(BackendUnavailableError("no answer"))
    index = HybridIndex(rows, vectors, down, SearchSettings("hybrid"))
    answer = index.search(["three"], 1, embed=HashEncoder().encode)
    assert (answer.hits[0].ids, answer.mode) == (("b",), "dense")
    assert answer.degraded == "bm25 unavailable: no answer"
    with pytest.raises(
        BackendUnavailableError, match=r"bm25 unavailable: no answer; dense unavailable: gone"
    ):
        HybridIndex(rows, Unavailable(BackendUnavailableError("gone")), down).search(
            ["x"], 1, embed=HashEncoder().encode
        )


def test_without_faiss_the_index_answers_by_bm25(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from indexes.vectors.faiss_files import load_faiss

    load_faiss.cache_clear()
    monkeypatch.setitem(sys.modules, "faiss", None)
    try:
        poor = Engine(engine.directory, encoder=HashEncoder())
        answer = poor.search("rain floods", mode="hybrid")
        assert "[cpu]'" in answer.degraded
        assert answer.hits[0].ids[0] == "a"
        with pytest.raises(MissingExtraError, match=r"\[cpu\]'"):
            poor.search("rain", mode="dense")
    finally:
        load_faiss.cache_clear()


def test_an_encoder_that_cannot_be_loaded_degrades(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, **_: object) -> None:
        raise LinkerError(f"no model {name}")

    monkeypatch.setattr("linker.encoders.opened.load_encoder", refuse)
    answer = Engine(engine.directory).search("rain floods", mode="hybrid")
    assert answer.degraded == "dense unavailable: no model hash"


def test_vectors_that_are_no_numbers_are_refused_and_nothing_is_written(engine: Engine) -> None:
    class Nan(HashEncoder):
        def encode(self, texts: Sequence[str], **options: Any) -> Any:
            return super().encode(texts, **options) * np.float32(np.nan)

    with pytest.raises(BadVectorError, match="'n1'"):
        Engine(engine.directory, encoder=Nan()).add([Document("n1", "x")])
    assert len(Engine(engine.directory)) == 4


def test_vectors_come_with_an_encoder_and_only_then(engine: Engine, tmp_path: Path) -> None:
    with (
        Writer.open(engine.directory) as writer,
        pytest.raises(BadVectorError, match="pass vectors if and only if"),
    ):
        writer.add([Document("n1", "x")], None)
    building.build([write_corpus(tmp_path / "c.jsonl", 2)], tmp_path / "bm25", building.BuildOptions())
    with (
        Writer.open(tmp_path / "bm25") as writer,
        pytest.raises(BadVectorError, match="pass vectors if and only if"),
    ):
        writer.add([Document("n1", "x")], np.ones((1, 4), np.float32))
    assert (len(Engine(engine.directory)), len(Engine(tmp_path / "bm25"))) == (4, 2)


def test_metadata_filters_as_it_is_read_back_and_what_cannot_be_stored_is_named(engine: Engine) -> None:
    engine.add([Document("dated", "rain", metadata={"day": datetime.date(2020, 1, 2), "n": 3})])
    assert engine.document("dated").metadata == {"day": "2020-01-02", "n": 3}
    modes: tuple[Mode, ...] = ("bm25", "dense")
    for mode in modes:
        assert found(engine, "rain", mode, where=["day=2020-01-02", "n=3"]) == ["dated"]
    for bad in (Document("odd", "x", metadata={"s": {1, 2}}), Document("odd", "\ud800")):
        with pytest.raises(BadDocumentError, match="'odd' cannot be stored"):
            engine.add([bad])
    assert "odd" not in Engine(engine.directory)


def test_tune_stores_its_choice(engine: Engine) -> None:
    queries = [Query(d.id, d.text) for d in DOCUMENTS] + [Query("unjudged", "x"), Query("lost", "y")]
    qrels = {d.id: {d.id: 1} for d in DOCUMENTS} | {"lost": {"not in the index": 1}}
    tuning = engine.tune(queries, qrels)
    assert tuning.queries == 5
    assert tuning.chosen == tuning.default  # both retrievers are perfect: nothing beats the untuned hybrid
    assert tuning.chosen.means["mrr"] == pytest.approx(4 / 5)
    stored = engine.collection.manifest.search
    assert (stored["mode"], stored["fusion"]) == ("hybrid", Fusion().to_json())
    with pytest.raises(LinkerError, match="no query has a relevant document"):
        engine.tune(queries, {"unjudged": {"a": 0}})


def test_tune_chooses_parameters_of_bm25_and_stores_them(tmp_path: Path) -> None:
    # A long document repeats the word, a short one has it once: the relevant one determines k1 and b.
    documents = [Document(f"long{i}", f"word{i} " * 6 + "filler text " * 12) for i in range(12)]
    documents += [Document(f"short{i}", f"word{i} note") for i in range(12)]
    folder = tmp_path / "index"
    building.create(folder)
    found = Engine(folder)
    found.add(documents)
    default = found.search([f"word{i}" for i in range(12)], 1).hits
    wanted = "long" if default[0].ids[0].startswith("short") else "short"
    tuning = found.tune(
        [Query(f"q{i}", f"word{i}") for i in range(12)], {f"q{i}": {f"{wanted}{i}": 1} for i in range(12)}
    )
    assert tuning.chosen.bm25 is not None and tuning.chosen.means["mrr"] == 1 > tuning.default.means["mrr"]
    assert Engine(folder).collection.manifest.bm25 == tuning.chosen.bm25
    assert Engine(folder).search("word3", 1).hits[0].ids == (f"{wanted}3",)


def test_settings_chosen_by_tune_are_used(engine: Engine) -> None:
    from indexes.writer import Writer

    fusion = Fusion("minmax", (0.25, 0.75))
    with Writer.open(engine.directory) as writer:
        writer.commit(search={"mode": "hybrid", "fusion": fusion.to_json()})
    assert Engine(engine.directory).collection.hybrid.settings.fusion == fusion


def test_a_read_only_folder_can_be_searched_and_moved(engine: Engine, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.move(engine.directory, moved)
    before = sorted(p.relative_to(moved) for p in moved.rglob("*"))
    for path in moved.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert found(Engine(moved, encoder=HashEncoder()), "volcano", "hybrid")[0] == "c"
    assert sorted(p.relative_to(moved) for p in moved.rglob("*")) == before


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq"])
def test_graphs_are_stored_and_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    monkeypatch.setattr(stored_vectors, "FaissIndex", functools.partial(FaissIndex, exact_below=100))
    corpus = write_corpus(tmp_path / "c.jsonl", 1200, length=5)
    options = building.BuildOptions(encoder="hash", vectors=kind, batch_size=500)
    building.build([corpus], tmp_path / "i", options)
    engine = Engine(tmp_path / "i", encoder=HashEncoder())
    graph = engine.collection.manifest.only_file("graph")
    assert graph
    text = engine.collection.documents[77].full_text
    assert found(engine, text, "dense")[0] == "d77"
    engine.delete(["d77"])
    assert engine.collection.manifest.only_file("graph") == graph
    assert found(engine, text, "dense")[0] != "d77"
    engine.add([Document("new", text)])
    assert engine.collection.manifest.only_file("graph") != graph
    assert found(Engine(tmp_path / "i", encoder=HashEncoder()), text, "dense")[0] == "new"


def test_only_resuming_changes_an_interrupted_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, out = write_corpus(tmp_path / "c.jsonl", 60), tmp_path / "i"
    options = building.BuildOptions(batch_size=10, commit_every=10)

    def interrupted(self: Any, batch: Sequence[Any], encoded: Any) -> None:
        if self._build.position >= 30:
            raise KeyboardInterrupt
        taken(self, batch, encoded)

    with monkeypatch.context() as patch:
        taken = Intake._take
        patch.setattr(Intake, "_take", interrupted)
        with pytest.raises(KeyboardInterrupt):
            building.build([corpus], out, options)
    engine = Engine.open(out)
    assert 0 < len(engine) < 60
    for change in (
        lambda: engine.add([Document("d50", "a document of the corpus, by another way")]),
        lambda: engine.delete(["d0"]),
        lambda: building.add([corpus], out, None, options),
    ):
        with pytest.raises(IndexesError, match=r"was interrupted: finish it first with .*--resume"):
            change()
    report = building.build([corpus], out, options, resume=True)
    assert (report.documents, report.quarantined) == (60, 0)
    engine = Engine.open(out)
    engine.add([Document("new", "now it may be changed")])
    engine.delete(["d0"])
    assert len(engine) == 60


def test_a_string_is_one_id_and_one_path(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("".join(f'{{"id": "{id_}", "text": "rain"}}\n' for id_ in ("1", "2", "12")))
    building.build(str(corpus), str(tmp_path / "index"))
    with Engine.open(tmp_path / "index") as engine:
        engine.delete("12")
        assert [id_ in engine for id_ in ("1", "2", "12")] == [True, True, False]
        assert engine.apply("12") == [False]
        assert len(engine) == 2
