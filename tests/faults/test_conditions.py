"""Read-only folders, two writers, readers next to a writer, clocks that go back, and manifests from the future."""

import dataclasses
import itertools
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.interface import FormatVersionError, IndexesError, LockedError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import records
from indexes.writer import Writer
from linker.corpora.identity import identity
from linker.engine import building, intake
from tests.faults.small_disk import mount
from tests.faults.support import KILLED, Worker, assert_tidy, content
from tests.faults.test_compaction import add, document, fresh
from tests.helpers import WORDS, HashEncoder, linker, linker_process, write_corpus


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as running:
        yield running


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """An index on a file system that is mounted read-only."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(folder, "16m")
    try:
        out = fresh(folder / "i", [document(n) for n in range(50)])
        with Writer.open(out) as writer:
            writer.remove(["d3"])
            writer.commit()
        mount(folder, "16m", "remount", "ro")
        yield out
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_read_only_index_is_searched_and_every_change_is_refused(read_only: Path, tmp_path: Path) -> None:
    before = content(read_only)
    more = write_corpus(tmp_path / "m.jsonl", 5, prefix="m")
    assert linker("index", "verify", read_only).returncode == 0
    assert linker("search", read_only, "--text", "banel", "--mode", "bm25").returncode == 0
    for arguments in (
        ("index", "delete", read_only, "d1"),
        ("index", "compact", read_only),
        ("index", "build", more, "--out", read_only.parent / "new"),
    ):
        refused = linker(*arguments, check=1).stderr
        assert "Read-only file system" in refused
        assert "choose another directory" in refused
    with pytest.raises(IndexesError, match="Read-only file system"):
        building.add([more], read_only, HashEncoder(), building.BuildOptions())
    assert content(read_only) == before


def test_a_second_writer_is_refused_and_disturbs_nothing(tmp_path: Path) -> None:
    out = fresh(tmp_path / "i", [document(n) for n in range(20)])
    with Writer.open(out) as writer:
        writer.remove(["d1"])
        for command in (("delete", out, "d2", "--wait", "0"), ("compact", out)):
            assert "another process is writing" in linker_process("index", *command, check=1).stderr
        with pytest.raises(LockedError), Writer.open(out):
            pass
        writer.commit()
        writer.compact()
    assert linker_process("index", "delete", out, "d2").returncode == 0
    assert Collection.open(out).manifest.documents == 18
    assert_tidy(out)


def test_locks_of_the_dead_do_not_count(tmp_path: Path, worker: Worker) -> None:
    corpus, out = write_corpus(tmp_path / "c.jsonl", 200), tmp_path / "i"
    assert worker.ask("build", corpus, out, fault="build.added:3")["status"] == KILLED
    assert (out / storage.SCRATCH).exists()
    (out / storage.LOCK).write_text("4711")
    worker.make("build", corpus, out)
    assert Collection.open(out).manifest.documents == 200
    assert (
        out / storage.LOCK
    ).read_text() == "4711"  # only the kernel's lock counts, never the file's content


def test_readers_beside_a_writer_see_whole_generations(tmp_path: Path) -> None:
    """Adds, removals and compactions; a reader always sees all of a commit on both sides, or none of it."""
    out = fresh(tmp_path / "i", [document(n) for n in range(40)])
    states = {frozenset(f"d{n}" for n in range(40))}
    ended, seen, failures = threading.Event(), set(), []

    def read() -> None:
        try:
            while not ended.is_set():
                collection = Collection.open(out)
                ids = frozenset(i for i in collection.rows.ids if i in collection.rows)
                query = HashEncoder().encode(["banel"])
                assert collection.hybrid.vectors
                assert collection.hybrid.text
                found, _ = collection.hybrid.vectors.search_rows(query, 200)
                assert {collection.rows.ids[row] for row in found[0] if row >= 0} == ids
                assert {d.id for d in map(collection.document, ids)} == ids
                rows, _ = collection.hybrid.text.search_rows([" ".join(WORDS)], 200)
                assert {collection.rows.ids[row] for row in rows[0] if row >= 0} == ids
                assert ids in states
                seen.add(collection.manifest.generation)
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    rng, present, numbers = random.Random(2), set(next(iter(states))), itertools.count(40)
    try:
        for turn in range(12):
            with Writer.open(out) as writer:
                if turn % 3 == 0:
                    new = [document(next(numbers)) for _ in range(30)]
                    present |= {d.id for d in new}
                    states.add(frozenset(present))
                    add(writer, new)
                elif turn % 3 == 1:
                    gone = rng.sample(sorted(present), 20)
                    present -= set(gone)
                    states.add(frozenset(present))
                    writer.remove(gone)
                    writer.commit()
                else:
                    writer.compact()
    finally:
        ended.set()
        for reader in readers:
            reader.join()
    assert not failures, failures
    assert len(seen) > 2
    assert_tidy(out)


def test_a_clock_that_goes_back_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two steps, all file times are randomised and the clock runs backwards."""
    clock, rng = itertools.count(2_000_000_000, -86_400), random.Random(1)
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    monkeypatch.setattr(time, "time_ns", lambda: next(clock) * 10**9)
    corpus, more = write_corpus(tmp_path / "c.jsonl", 200), write_corpus(tmp_path / "m.jsonl", 50, prefix="m")
    options = building.BuildOptions(batch_size=32, commit_every=64)

    def shake() -> None:
        for path in tmp_path.rglob("*"):
            os.utime(path, (rng.randrange(2**32), rng.randrange(2**32)))

    out = tmp_path / "i"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        encoded = itertools.count()
        patch.setattr(intake.Intake, "_encode", lambda *_: interrupt() if next(encoded) == 4 else None)
        building.build([corpus], out, options)
    shake()
    assert 0 < manifests.load(out).documents < 200
    building.build([corpus], out, options, resume=True)
    shake()
    building.add([more], out, None, options)
    shake()
    linker("index", "delete", out, "d1", "m2")
    shake()
    linker("index", "compact", out)
    shake()
    assert linker("index", "verify", out).returncode == 0
    ids = Collection.open(out).rows.ids
    assert ids == [
        i for i in [*(f"d{n}" for n in range(200)), *(f"m{n}" for n in range(50))] if i not in {"d1", "m2"}
    ]
    state = identity(corpus, None, out)
    shake()
    assert identity(corpus, None, out) == state


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_manifest_of_a_future_version_is_refused_by_every_command(tmp_path: Path) -> None:
    out = fresh(tmp_path / "i", [document(1)])
    future = dataclasses.replace(manifests.load(out), format=records.FORMAT + 1)
    storage.replace_manifest(out, future)
    files = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    corpus = write_corpus(tmp_path / "c.jsonl", 5)
    for arguments in (
        ("search", out, "--text", "x"),
        ("index", "info", out),
        ("index", "verify", out),
        ("index", "delete", out, "d1"),
        ("index", "compact", out),
        ("index", "add", out, corpus),
        ("index", "build", corpus, "--out", out, "--resume"),
    ):
        message = linker(*arguments, check=1).stderr
        assert f"has format {records.FORMAT + 1}, but this version reads" in message
        assert "use the linker that wrote it" in message
    with pytest.raises(FormatVersionError):
        Collection.open(out)
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == files
