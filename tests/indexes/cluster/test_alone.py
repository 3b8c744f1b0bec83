"""An index only on a cluster, on a real server: a directory's results, changes, many writers, faults."""

import json
import multiprocessing
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.address import Address
from indexes.cluster import RemoteWriter, check, drop, manifest_of, open_remote
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.cluster.mapping import delete_document, index_document
from indexes.cluster.sending import Sender
from indexes.disk import faults
from indexes.fusion import Fusion
from indexes.hybrid import SearchSettings
from indexes.interface import (
    BackendUnavailableError,
    BadFilterError,
    Document,
    IndexesError,
    UnknownIdError,
)
from indexes.writer import writer_of
from linker.engine import building
from linker.engine.engine import Engine
from tests.helpers import HashEncoder, linker, write_corpus
from tests.indexes.cluster.conftest import (
    Make,
    assert_same_answers,
    assert_same_bm25,
    assert_same_phrases,
    documents,
    embedded,
)

TURNS = 6  # per writer


class DelayedSender:
    """Sends documents only when it is flushed, as workers may."""

    def __init__(self, sender: Sender) -> None:
        self._sender, self._calls = sender, list[tuple[Any, ...]]()

    def put(self, *call: Any) -> None:
        self._calls.append(call)

    def flush(self) -> None:
        while self._calls:
            self._sender.put(*self._calls.pop(0))
        self._sender.flush()


def remote(engine: Engine) -> Address:
    address = Address.of(engine.directory)
    assert address
    return address


@pytest.mark.parametrize("vectors", ["flat", "hnsw"])
def test_the_answers_are_those_of_a_directory(make: Make, tmp_path: Path, vectors: str) -> None:
    mine, theirs = make(vectors, elastic=None), embedded(tmp_path)
    texts = assert_same_answers(mine, theirs, tmp_path)
    assert len(mine) == len(theirs) == 300
    assert mine.fields == theirs.fields
    assert list(mine.documents()) == list(theirs.documents()) == texts
    assert list(mine.documents("group>=3")) == list(theirs.documents("group>=3"))
    assert mine.collection.rows.ids == theirs.collection.rows.ids
    vectors_of_both = (e.collection.documents.vectors(16) for e in (mine, theirs))
    for one, other in zip(*vectors_of_both, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_long_texts_rank_as_in_a_directory_to_the_last_bit(make: Make, tmp_path: Path) -> None:
    shape = ElasticSettings(("http://127.0.0.1:9",), "shape", 2)
    assert_same_bm25(make("none", elastic=shape), embedded(tmp_path))


def test_phrases_are_found_as_in_a_directory(make: Make, tmp_path: Path) -> None:
    assert_same_phrases(make("flat", positions=True), embedded(tmp_path), tmp_path)


def test_equal_fused_scores_come_in_the_order_of_arrival(make: Make, tmp_path: Path) -> None:
    """BM25 ranks `later` first and `early` second, the vectors the other way round: by ranks they are equal."""
    mine, theirs = make(), embedded(tmp_path)
    early, later = Document("z", "banel kisen"), Document("a", "banel banel banel kisen kisen kisen kisen")
    for engine in (mine, theirs):
        engine.add([Document(f"d{n}", "deras lodom " * 4) for n in range(8)])
        engine.add([early])
        engine.add([later])
        assert engine.search("banel", mode="bm25").hits[0].ids == ("a", "z")
        assert engine.search("banel", mode="dense").hits[0].ids[:2] == ("z", "a")
        hybrid = engine.collection.hybrid
        hybrid.settings = SearchSettings("hybrid", Fusion("rrf", (1.0, 1.0)))
        (hits,) = hybrid.search(["banel"], 3, embed=HashEncoder().encode).hits
        assert hits.ids[:2] == ("z", "a")
        assert hits.scores[0] == hits.scores[1]


def test_changes_are_seen_by_an_engine_that_is_open(make: Make, tmp_path: Path) -> None:
    engine = make()
    engine.add(documents(50, folder=tmp_path))
    with writer_of(engine.directory) as writer:
        assert isinstance(writer, RemoteWriter)
        writer.sender = DelayedSender(writer.sender)
        new = [Document("new", "zebra banel"), Document("other", "zebra")]
        writer.add(new, HashEncoder().encode([d.text for d in new]))
        assert writer.present(["new"])
        assert engine.search("zebra", mode="bm25").hits[0].ids == ()  # not before the commit
        assert writer.commit().documents == 52
    assert engine.search("zebra", mode="bm25").hits[0].ids == ("other", "new")
    assert engine.document("new") == Document("new", "zebra banel")
    assert "new" in engine
    assert len(engine) == 52
    engine.delete(["new", "d3", "d3"])
    assert "new" not in engine
    assert len(engine) == 50
    with pytest.raises(UnknownIdError, match="'new', 'd3'"):
        engine.delete(["new", "d4", "d3"])
    for absent in ("new", "", "\udcff"):  # no document has an empty id, or one that is not Unicode
        assert absent not in engine
        for look in (engine.document, lambda id_: engine.delete([id_])):
            with pytest.raises(UnknownIdError, match=rf"^not in the index: {re.escape(repr(absent))}"):
                look(absent)
    assert "d4" in engine


def test_an_unknown_field_is_an_error_as_in_a_directory(make: Make, tmp_path: Path) -> None:
    engine = make("none")
    assert engine.search("banel", where="lan=en").hits[0].ids == ()  # without documents, any field is valid
    engine.add(documents(5, folder=tmp_path))
    with pytest.raises(BadFilterError, match="no document has the field 'lan': did you mean 'lang'"):
        engine.search("banel", where="lan=en")
    assert engine.fields == ("group", "lang")


def test_long_and_strange_ids_and_values_come_back(make: Make) -> None:
    engine = make("none")
    strange = [
        Document("é" * 400, "zebra one", metadata={"ratio": 0.1, "big": 2**60, "deep": {"a": [None, True]}}),
        Document("/_search?q=*", "zebra one two", metadata={"x" * 300: "y", "tag": "x" * 40_000}),
        Document("\U0001f600", "zebra one two three", "a\ttitle\n"),
    ]
    engine.add(strange)
    assert [hit.document for hit in engine.search("zebra").hits[0]] == strange
    assert engine.search("zebra", where=["tag=" + "x" * 40_000]).hits[0].ids == ("/_search?q=*",)
    engine.delete([d.id for d in strange])
    assert len(engine) == 0


def test_of_two_writes_the_later_stamp_stays(make: Make) -> None:
    engine = make("none")
    with RemoteWriter.change(remote(engine)) as early, RemoteWriter.change(remote(engine)) as late:
        early.add([Document("d", "early")], None)
        late.add([Document("d", "late")], None)  # not yet sent by the other writer, so both may send it
        late.commit()
        early.commit()  # arrives last, and is older
    assert engine.document("d").text == "late"
    with RemoteWriter.change(remote(engine)) as writer:
        writer.remove(["d"])
        stamp = time.time_ns() - 10**9
        writer.commit()
        old = Document("d", "older than the deletion")
        writer._index.bulk.put(index_document(old, stamp, ["older"], {}))
        writer.commit()
    assert "d" not in engine


def write_all(address: str, number: int, rounds: int) -> None:
    """Replace the same documents repeatedly, and add some of this writer's own."""
    named = Address.of(address)
    assert named
    for turn in range(rounds):
        with RemoteWriter.change(named) as writer:
            ids = [f"d{n}" for n in range(20)]
            present = writer.present(ids)
            writer.remove(sorted(present))
            writer.add([Document(i, f"writer{number} turn{turn}") for i in ids], None)
            writer.add([Document(f"w{number}-{turn}", "own")], None)
            writer.commit()


def test_processes_write_at_the_same_time(make: Make) -> None:
    engine = make("none")
    # If both find them absent, one would be refused.
    with RemoteWriter.change(remote(engine)) as writer:
        writer.add([Document(f"d{n}", "first") for n in range(20)], None)
        writer.commit()
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=write_all, args=(str(remote(engine)), number, TURNS)) for number in range(2)
    ]
    for process in writers:
        process.start()
    counts = set()
    while any(process.is_alive() for process in writers):
        counts.add(len(engine.search("own", 100).hits[0]))
        with RemoteWriter.change(remote(engine)) as other:
            other.commit()
    for process in writers:
        process.join()
        assert process.exitcode == 0
    assert {f"w{number}-{turn}" for number in range(2) for turn in range(TURNS)} | {
        f"d{n}" for n in range(20)
    } == {d.id for d in engine.documents()}
    # Each document is as left by one writer's last turn.
    assert {engine.document(f"d{n}").text for n in range(20)} <= {
        f"writer{number} turn{TURNS - 1}" for number in range(2)
    }
    store = open_remote(remote(engine)).index
    sources = store.sources([f"d{n}" for n in range(20)])
    assert {id_: source["stamp"] for id_, source in sources.items()} == store.versions(list(sources))
    for word in ("writer0", "writer1"):
        matches = set(engine.search(word, 100).hits[0].ids)
        assert matches == {f"d{n}" for n in range(20) if engine.document(f"d{n}").text.startswith(word)}


class _StopError(Exception):
    """A crash at a fault point."""


def test_an_interrupted_build_is_seen_by_nobody_and_is_resumed(
    address: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = Path(address())
    corpus = write_corpus(tmp_path / "c.jsonl", 100)
    with corpus.open("a") as file:
        file.write('{"id": "d3", "text": "an id twice"}\nnot json\n')
    passed = []

    def crash(name: str) -> None:
        passed.append(name)
        if name == "elastic.flushed" and passed.count(name) == 3:
            raise _StopError

    options = building.BuildOptions(batch_size=10, commit_every=20)
    with monkeypatch.context() as patch:
        patch.setattr(faults, "point", crash)
        with pytest.raises(_StopError):
            building.build([corpus], where, options)
    with pytest.raises(IndexesError, match="was interrupted: finish it with `linker index build … --resume`"):
        Engine(where)
    with pytest.raises(IndexesError, match="was interrupted, or is running: continue it with `resume`"):
        building.build([corpus], where, options)
    with pytest.raises(IndexesError, match="was being built with another `language`"):
        building.build([corpus], where, building.BuildOptions(language="german"), resume=True)
    report = building.build([corpus], where, options, resume=True)
    assert (report.documents, report.quarantined) == (100, 2)
    engine = Engine(where)
    assert [d.id for d in engine.documents()] == [f"d{n}" for n in range(100)]
    assert engine.document("d3").text != "an id twice"
    with pytest.raises(IndexesError, match="exists already: name another index, or delete it"):
        building.build([corpus], where, options)
    with pytest.raises(IndexesError, match="no interrupted build"):
        building.build([corpus], where, options, resume=True)


@pytest.mark.parametrize("step", ["describe", "promote"])
def test_a_build_that_stops_within_its_last_commit_stores_nothing_twice(
    address: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    where, corpus = Path(address()), tmp_path / "c.jsonl"
    corpus.write_text('{"id": "d", "text": "banel"}\nnot json\n{"id": "d", "text": "an id twice"}\n')
    real, calls = getattr(ClusterIndex, step), list[None]()

    def stop(store: ClusterIndex, *arguments: Any) -> None:
        if step == "promote" or calls:  # the first description is that of the new generation
            raise _StopError
        calls.append(real(store, *arguments))

    with monkeypatch.context() as patch:
        patch.setattr(ClusterIndex, step, stop)
        with pytest.raises(_StopError):
            building.build([corpus], where, building.BuildOptions())
    assert building.build([corpus], where, building.BuildOptions(), resume=True).documents == 1
    assert manifest_of(where).quarantined == 2
    for expected in (5, 8):  # an addition gets its records each time
        assert building.add([corpus], where, None, building.BuildOptions()).quarantined == 3
        assert manifest_of(where).quarantined == expected


def test_an_index_whose_name_begins_another_name_leaves_that_alone(server: tuple[str, str]) -> None:
    key, url = server
    stem = Address((url,), new_name("remote"), key)
    beside = Address((url,), f"{stem.name}-german", key)
    for address in (beside, stem):
        building.create(str(address))
    assert drop(stem) == (0, 1)
    assert drop(beside) == (0, 1)


def test_a_dropped_index_is_gone_with_its_quarantine(make: Make) -> None:
    engine = make("none")
    named = remote(engine)
    with RemoteWriter.change(named) as writer:
        writer.quarantine(b'{"reason": "bad"}')
        assert writer.commit().quarantined == 1
    assert drop(named) == (0, 1)
    store = ClusterIndex(ElasticSettings.of(named))
    assert not store.client.indices.exists(index=f"{named.name}-quarantine")
    with pytest.raises(IndexesError, match="there is no index"):
        drop(named)
    with pytest.raises(BackendUnavailableError, match="has no index"):
        engine.search("banel")


def test_verification_finds_what_is_wrong_and_nothing_else(make: Make, tmp_path: Path) -> None:
    engine = make("hnsw", elastic=None)
    engine.add(documents(60, folder=tmp_path))
    engine.add([Document("long", "zebra " * 3, metadata={"tag": ["x" * 40_000, "y"]})])
    assert check(remote(engine)) == ([], [], 61, 61)
    assert check(remote(engine), 10, seed=1, documents=61).sampled == 10
    assert check(remote(engine), documents=62).damage == [
        f"{engine.collection.index.name}: 61 documents instead of 62"  # type: ignore[attr-defined]
    ]
    store = engine.collection.index  # type: ignore[attr-defined]
    store.bulk.put(delete_document("d5", store.versions(["d5"])["d5"] + 1))  # without linker
    store.bulk.flush()
    store.refresh()
    assert check(remote(engine), documents=61).damage == [f"{store.name}: 60 documents instead of 61"]
    stamp = store.versions(["d3"])["d3"] + 1000
    vectors = dict.fromkeys(("vector", "near"), np.full(16, 0.25, dtype=np.float32))
    store.bulk.put(index_document(engine.document("d3"), stamp, ["other", "terms"], vectors))
    right, other = (index_document(engine.document("d4"), stamp - n, [], {}) for n in range(2))
    store.bulk.put(right._replace(source=other.source))
    store.bulk.flush()
    store.refresh()
    wrong = "\n".join(check(remote(engine)).damage)
    assert "the field vector is missing in 1 of its documents" in wrong
    assert "the field near is missing in 1 of its documents" in wrong
    assert "document 'd3' is not found by its own terms" in wrong
    assert "document 'd4' is stored under another id or version" in wrong
    assert len(wrong.splitlines()) == 4
    assert linker("index", "verify", str(remote(engine)), check=1).stdout.count("damaged: ") == 4


def test_an_index_of_others_is_left_alone(server: tuple[str, str]) -> None:
    key, url = server
    named = Address((url,), new_name("foreign"), key)
    client = ClusterIndex(ElasticSettings.of(named)).client
    client.indices.create(index=named.name)
    try:
        with pytest.raises(IndexesError, match="is not a linker index without a directory"):
            open_remote(named)
    finally:
        client.indices.delete(index=named.name)


def test_the_commands_take_an_address_for_a_directory(
    address: Callable[[], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, corpus = address(), write_corpus(tmp_path / "c.jsonl", 40)
    assert linker("index", "build", corpus, "--out", where, "--shards", "2").stdout == (
        f"{where}: 40 documents added, 40 in all\n"
    )
    hits = linker("search", where, "banel deras", "--where", "lang=en", "-k", "3").stdout
    assert len(hits.splitlines()) == 3
    write_corpus(tmp_path / "more.jsonl", 5, prefix="m")
    assert "5 documents added, 45 in all" in linker("index", "add", where, tmp_path / "more.jsonl").stdout
    repeat = linker("index", "add", where, tmp_path / "more.jsonl")
    assert "0 documents added, 45 in all" in repeat.stdout
    assert "5 records could not be used" in repeat.stderr
    assert (
        "5 documents added, 45" in linker("index", "add", where, tmp_path / "more.jsonl", "--replace").stdout
    )
    assert "2 documents deleted, 43 left" in linker("index", "delete", where, "m1", "m2").stdout
    info = linker("index", "info", where).stdout
    assert "shards 2" in info
    assert manifest_of(Path(where)).documents == 43
    assert "43 documents by count, and 43 of them by content" in linker("index", "verify", where).stdout
    assert "instead of 44" in linker("index", "verify", where, "--expect", "44", check=1).stdout
    assert "43 documents, " in linker("index", "compact", where).stdout
    compacted = json.loads(linker("index", "compact", where, "--json").stdout)
    assert (compacted["documents"], compacted["dropped"]) == (43, None)
    for command in (
        ("index", "build", corpus, "--out", where, "--keep", "2"), ("index", "backup", where, tmp_path / "b"),
        ("index", "join", tmp_path / "j", where), ("search", where, where, "banel"),
    ):  # fmt: skip
        refused = linker(*command, check=None)
        assert refused.returncode
        assert "Traceback" not in refused.stderr
        assert f"{where} is an index on" in refused.stderr
    assert linker("index", "drop", where, "--yes").stdout == f"{where}: deleted, with 43 documents\n"
