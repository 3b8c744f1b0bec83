"""Indexes copied within a cluster: several joined into one, and one rebuilt with other shards."""

import re
import signal
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from indexes.address import Address
from indexes.cluster import RemoteCollection, check, drop, manifest_of, open_remote, rebuilding
from indexes.cluster.index import new_name
from indexes.disk import faults
from indexes.interface import DuplicateIdError, EncoderMismatchError, IndexesError
from indexes.sharded import join
from linker.engine.engine import Engine
from tests.helpers import HashEncoder, linker, linker_process, write_corpus
from tests.indexes.cluster.conftest import MODES, QUERIES, Make, assert_same, documents, embedded


def opened(engine: Engine) -> RemoteCollection:
    """Return the generation that is now at an engine's address."""
    return open_remote(remote(engine.directory))


def remote(where: str | Path) -> Address:
    address = Address.of(where)
    assert address
    return address


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete an old generation after a second: no reader here looked up the name before."""
    monkeypatch.setattr(rebuilding, "FOLLOWED", 1.0)


def test_joined_indexes_answer_like_one(make: Make, address: Callable[[], str], tmp_path: Path) -> None:
    parts, whole = (make("flat"), embedded(tmp_path)), embedded(tmp_path / "whole")
    for part, prefix in zip(parts, "ab", strict=True):
        texts = documents(60, prefix, ord(prefix), folder=tmp_path)
        part.add(texts)
        part.delete([texts[7].id])
        whole.add([text for text in texts if text.id != texts[7].id])
    target = Path(address())
    join(target, [part.directory for part in parts])
    joined = Engine(target, encoder=HashEncoder())
    for mode in MODES:
        for where in (None, "lang=en", "group>=3"):
            assert_same(*(e.search(QUERIES, 20, mode=mode, where=where) for e in (joined, whole)))
    assert list(joined.documents()) == list(whole.documents())
    assert check(remote(target)).damage == []
    joined.add(documents(3, "more", folder=tmp_path))
    assert len(joined) == 121
    with pytest.raises(IndexesError, match="exists already"):
        join(target, [parts[0].directory])


def test_a_join_that_fails_leaves_nothing(make: Make, address: Callable[[], str], tmp_path: Path) -> None:
    one, other, plain = make("flat"), make("flat"), make("none")
    for part in (one, other):
        part.add(documents(5, folder=tmp_path))
    target = address()
    with pytest.raises(
        DuplicateIdError, match=rf"{re.escape(str(remote(other.directory)))} cannot be joined .*'d0'"
    ):
        join(Path(target), [one.directory, other.directory])
    with pytest.raises(EncoderMismatchError, match="cannot be searched together"):
        join(Path(target), [one.directory, plain.directory])
    with pytest.raises(IndexesError, match="named twice"):
        join(Path(target), [one.directory, one.directory])
    with pytest.raises(IndexesError, match="there is no index"):
        manifest_of(Path(target))


def test_the_command_joins_and_rebuilds(address: Callable[[], str], tmp_path: Path) -> None:
    one, other, both = address(), tmp_path / "b.index", address()
    for name, out in (("a", one), ("b", other)):
        linker("index", "build", write_corpus(tmp_path / f"{name}.jsonl", 20, prefix=name), "--out", out)
    done = linker("index", "join", both, one, other)
    assert done.stdout == f"{both}: 40 documents, copied from 2 indexes\n"
    assert linker("search", both, "banel").stdout
    done = linker("index", "rebuild", both, "--shards", "2")
    assert done.stdout == f"{both}: 40 documents on {', '.join(remote(both).urls)}\n"
    assert "shards 2" in linker("index", "info", both).stdout
    assert "leave out --url" in linker("index", "rebuild", both, "--url", "http://[::1]", check=2).stderr


def test_a_rebuilt_index_is_the_same(make: Make, tmp_path: Path) -> None:
    engine, texts = make("hnsw"), documents(120, folder=tmp_path)
    engine.add(texts[:100])
    engine.add(texts[100:])
    engine.delete(["d5"])
    at, ids = remote(engine.directory), [text.id for text in texts]
    before = [engine.search(QUERIES, 20, mode=mode) for mode in MODES]
    assert all(hit.document for answer in before for hits in answer.hits for hit in hits)  # read now
    stamps = opened(engine).index.versions(ids)
    manifest = rebuilding.rebuild(at, shards=2)
    assert (manifest.documents, manifest.elastic["shards"]) == (119, 2)
    after = Engine(engine.directory, encoder=HashEncoder())
    for mode, answer in zip(MODES, before, strict=True):
        assert_same(after.search(QUERIES, 20, mode=mode), answer)
    assert opened(after).index.versions(ids) == stamps
    assert opened(after).state.name.endswith("-g000002")
    assert check(at, documents=119).damage == []
    after.add(documents(4, "more", folder=tmp_path))
    assert rebuilding.rebuild(at).documents == 123


def test_writers_wait_for_a_rebuild(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, before, after = make("flat"), documents(20, folder=tmp_path), documents(5, "m", folder=tmp_path)
    engine.add(before)
    writer = threading.Thread(target=lambda: engine.add(after))
    monkeypatch.setattr(faults, "point", lambda name: writer.start() if name == "elastic.copied" else None)
    rebuilding.rebuild(remote(engine.directory))
    writer.join(60)
    found = Engine(engine.directory, encoder=HashEncoder())
    assert sorted(found.collection.rows.ids) == sorted(text.id for text in (*before, *after))


def test_a_killed_rebuild_is_repeated(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make("flat")
    engine.add(documents(20, folder=tmp_path))
    monkeypatch.setenv("LINKER_FAULT", "elastic.copied")
    killed = linker_process("index", "rebuild", engine.directory, check=None)
    assert killed.returncode == -signal.SIGKILL
    found = Engine(engine.directory, encoder=HashEncoder())
    assert opened(found).state.name.endswith("-g000001")
    assert len(found) == 20
    rebuilding.rebuild(remote(engine.directory))
    found = Engine(engine.directory, encoder=HashEncoder())
    found.add(documents(2, "m", folder=tmp_path))
    assert len(found) == 22


def test_a_failed_rebuild_lets_writers_in(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make("flat")
    engine.add(documents(20, folder=tmp_path))

    def fail(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(faults, "point", fail)
    with pytest.raises(OSError, match="elastic"):
        rebuilding.rebuild(remote(engine.directory))
    monkeypatch.undo()
    engine.add(documents(2, "m", folder=tmp_path))
    assert len(engine) == 22


def call(server: str, method: str, path: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(
        server + path, orjson.dumps(body), {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def test_a_restored_snapshot_is_the_index(elastic: str, tmp_path: Path) -> None:
    name = new_name("snapshot")
    address = f"elastic+{elastic}/{name}"
    named = Address.of(address)
    assert named
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 60), "--out", address)
    linker("index", "delete", address, "d3")

    def found() -> tuple[list[str], list[float]]:
        with Engine.open(address) as engine:
            (hits,) = engine.search("banel", 20).hits
            assert len(engine) == 59
            return list(hits.ids), hits.scores.tolist()

    before = found()
    assert before[0]
    repository = {"type": "fs", "settings": {"location": name}}
    indexes = {"indices": f"{name}-*", "include_global_state": False}
    call(elastic, "PUT", f"/_snapshot/{name}", repository)
    call(elastic, "PUT", f"/_snapshot/{name}/monday?wait_for_completion=true", indexes)
    drop(named)
    call(elastic, "POST", f"/_snapshot/{name}/monday/_restore?wait_for_completion=true", indexes)
    assert found() == before
    assert check(named).damage == []
    linker("index", "add", address, write_corpus(tmp_path / "more.jsonl", 5, seed=1, prefix="m"))
    assert check(named).documents == 64
    drop(named)


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("backup", "copy.tar"), "take a snapshot"),
        (("checkout", "1"), "restore a snapshot"),
    ],
)
def test_what_a_cluster_does_instead_is_said(command: tuple[str, ...], remedy: str) -> None:
    done = linker("index", command[0], "elastic+http://127.0.0.1:1/stories", *command[1:], check=1)
    assert "is an index on Elasticsearch, which does not support" in done.stderr
    assert remedy in done.stderr
