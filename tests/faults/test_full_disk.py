"""A disk that fills up during a build: a clear message, nothing half-written, and the build can resume."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.interface import IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.writer import Writer
from tests.faults.small_disk import mount, mounted
from tests.helpers import linker, write_corpus


@pytest.fixture
def disk_of_3m(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "3m") as folder:
        yield folder


def test_build_stops_with_a_message_and_resumes(disk_of_3m: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 20_000, length=40)
    out = disk_of_3m / "i"
    arguments = ("index", "build", corpus, "--out", out, "--commit-every", "1000", "--batch-size", "200")
    failed = linker(*arguments, check=1)
    assert "No space left" in failed.stderr
    assert "--resume" in failed.stderr
    manifest = storage.load_checked(out)
    assert 0 < manifest.documents < 20_000
    assert len(Collection.open(out).rows) == manifest.documents

    mount(disk_of_3m, "64m", "remount")
    linker(*arguments, "--resume")
    linker(
        "index", "build", corpus, "--out", tmp_path / "whole", "--commit-every", "1000", "--batch-size", "200"
    )
    resumed, whole = Collection.open(out), Collection.open(tmp_path / "whole")
    assert resumed.manifest.build == whole.manifest.build
    assert resumed.rows.ids == whole.rows.ids
    queries = ["banel deras", "kidom lovik supol"]
    for one, other in zip(
        resumed.hybrid.search(queries, 20).hits, whole.hybrid.search(queries, 20).hits, strict=True
    ):
        assert one.ids == other.ids
        assert one.scores.tolist() == other.scores.tolist()


def test_no_room_for_the_first_byte(disk_of_3m: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 10)
    descriptor = os.open(disk_of_3m / "filler", os.O_CREAT | os.O_WRONLY)
    with pytest.raises(OSError, match="No space"):
        while os.write(descriptor, b"x" * 4096):
            pass
    os.close(descriptor)
    failed = linker("index", "build", corpus, "--out", disk_of_3m / "i", check=1)
    assert "No space left" in failed.stderr
    assert not (disk_of_3m / "i" / manifests.NAME).exists()


def test_no_room_to_compact(disk_of_3m: Path, tmp_path: Path) -> None:
    out = disk_of_3m / "i"
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 1500, length=40), "--out", out)
    linker("index", "delete", out, *(f"d{n}" for n in range(500)))
    before = content_of(out)
    filler = disk_of_3m / "filler"
    with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    for arguments in (("compact", out), ("delete", out, "d600")):
        assert "No space left" in linker("index", *arguments, check=1).stderr
        assert content_of(out) == before
    filler.unlink()
    linker("index", "compact", out)
    assert storage.load_checked(out).rows == 1000
    assert content_of(out)[0] == before[0]


def test_only_a_build_is_advised_to_resume(disk_of_3m: Path, tmp_path: Path) -> None:
    out = disk_of_3m / "i"
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 500), "--out", out)
    before = content_of(out)
    added = linker(
        "index", "add", out, write_corpus(tmp_path / "d.jsonl", 20_000, prefix="n"), check=1
    ).stderr
    (tmp_path / "ranker").mkdir()
    (tmp_path / "ranker" / "model.txt").write_bytes(bytes(4 << 20))
    with pytest.raises(IndexesError) as stored, Writer.open(out) as writer:
        writer.store_ranker("0" * 16, tmp_path / "ranker")
    for message in (added, str(stored.value)):
        assert "No space left" in message
        assert "free some space and run the command again" in message
        assert "resume" not in message
    assert content_of(out) == before


def content_of(out: Path) -> tuple[list[str], list[str]]:
    collection = Collection.open(out)
    hits = collection.hybrid.search(["banel deras"], 20).hits[0]
    return [i for i in collection.rows.ids if i in collection.rows], sorted(hits.ids)
