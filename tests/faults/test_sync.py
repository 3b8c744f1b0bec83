"""Nothing counts before it is on disk: every file is flushed after its last write, and so are its folders."""

import os
from pathlib import Path
from typing import Any

import pytest

from indexes.disk import faults, writing
from indexes.interface import Document, IndexesError
from indexes.store import manifest as manifests
from indexes.store import records
from indexes.store.records import EncoderRecord, Manifest
from indexes.writer import Writer
from tests.helpers import HashEncoder

ENCODER = HashEncoder()
State = tuple[int, int]  # size and time of the last write


class Flushes:
    """The state of each file and folder at its last flush, and every flush and fault point in order."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.state: dict[Path, State] = {}
        # the same by inode: all names of a file share its content
        self.inodes: dict[tuple[int, int], State] = {}
        self.named: set[Path] = set()  # the contents of flushed folders
        self.events: list[str] = []
        self.commits = 0
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._flush(getattr(os, name)))
        patch.setattr(faults, "point", self._point)

    def _flush(self, real: Any) -> Any:
        def flush(file: Any) -> None:
            descriptor = file if isinstance(file, int) else file.fileno()
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            status = os.fstat(descriptor)
            self.state[path] = self.inodes[writing.inode(status)] = _state(status)
            self.named.update(path.iterdir() if path.is_dir() else ())
            self.events.append(str(path))
            real(descriptor)

        return flush

    def _point(self, name: str) -> None:
        self.events.append(name)

    def covers(self, path: Path) -> bool:
        """Return whether a file is unchanged since its last flush."""
        return self.inodes.get(writing.inode(path.stat())) == _state(path.stat())


def _state(status: os.stat_result) -> State:
    return status.st_size, status.st_mtime_ns


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> Flushes:
    return Flushes(monkeypatch)


@pytest.mark.parametrize("size", [1, 5000, 3 << 20])  # below and above the buffer size
def test_a_durable_write_is_flushed_whole(tmp_path: Path, flushes: Flushes, size: int) -> None:
    path = tmp_path / "file"
    record = writing.write(path, [b"x" * (size // 2), b"y" * (size - size // 2)])
    assert not flushes.covers(path)
    writing.flush([path])
    assert record.bytes == size
    assert flushes.covers(path)
    assert flushes.state[path][0] == size


@pytest.mark.parametrize("vectors", ["flat", "hnsw"])
def test_all_that_a_manifest_lists_is_flushed_before_it_is_in_place(
    tmp_path: Path, flushes: Flushes, monkeypatch: pytest.MonkeyPatch, vectors: str
) -> None:
    out = tmp_path / "index"

    def check(name: str) -> None:
        flushes.events.append(name)
        if name == "manifest.written":
            assert flushes.covers(out / f"{manifests.NAME}.tmp")
        if name == "manifest.replaced":
            flushes.commits += 1
            for file in manifests.load(out).files:
                assert flushes.covers(out / file), f"{file} is not flushed"
                for entry in (Path(file), *Path(file).parents[:-1]):
                    assert out / entry in flushes.named, f"the folder that names {entry} is not flushed"

    monkeypatch.setattr(faults, "point", check)
    manifest = Manifest(vectors=vectors, encoder=EncoderRecord("hash", ENCODER.fingerprint, ENCODER.dim))
    with Writer.create(out, manifest) as writer:
        add(writer, range(5))
        writer.quarantine(b"{}")
        writer.commit(records.BuildRecord(complete=True))
        add(writer, range(5, 12))
        writer.remove(["d2"])
        writer.commit()
    with Writer.open(out) as writer:
        writer.remove(["d7"])
        writer.commit()
        writer.compact()
    assert flushes.commits == 5
    for place, event in enumerate(flushes.events):
        if event == "manifest.replaced":  # the rename itself is flushed before anything else happens
            assert flushes.events[place + 1] == str(out)


@pytest.mark.parametrize("lost", ["ids.txt", ".postings", "text", "manifest.json.tmp"])
def test_a_commit_fails_with_any_of_its_flushes_and_can_be_repeated(
    tmp_path: Path, flushes: Flushes, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    out = tmp_path / "index"
    sync = writing.sync

    def failing(path: Path) -> None:
        if path.name.endswith(lost):
            raise OSError(5, "Input/output error")
        sync(path)

    manifest = Manifest(vectors="flat", encoder=EncoderRecord("hash", ENCODER.fingerprint, ENCODER.dim))
    with Writer.create(out, manifest) as writer:
        add(writer, range(5))
        writer.commit(records.BuildRecord(complete=True))
    before = (out / manifests.NAME).read_bytes()
    with monkeypatch.context() as patch, pytest.raises(IndexesError, match="Input/output"):
        patch.setattr(writing, "sync", failing)
        with Writer.open(out) as writer:
            add(writer, range(5, 9))
            writer.commit()
    assert (out / manifests.NAME).read_bytes() == before
    with Writer.open(out) as writer:
        add(writer, range(5, 9))
        writer.commit()
    assert all(flushes.covers(out / file) for file in manifests.load(out).files)


def add(writer: Writer, numbers: range) -> None:
    documents = [Document(f"d{i}", f"word{i} of text number{i % 3}") for i in numbers]
    writer.add(documents, ENCODER.encode([document.text for document in documents]))
