"""A disk that fills up during a build: a clear message, nothing half-written, and the build can resume."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.interface import IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.writer import Writer
from tests.faults.small_disk import mount, mounted
from tests.faults.support import Worker, content
from tests.helpers import ROOT, linker, write_corpus


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


# builds {out: limit in bytes} in a fork each, and prints how each ended
BUILDS = """
import json, os, resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.faults import worker
from indexes.interface import IndexesError

def build(corpus, out, limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        worker.build(Path(corpus), Path(out))
        return "acknowledged"
    except IndexesError as error:
        return str(error)

for out, limit in json.loads(sys.argv[2]).items():
    if not os.fork():
        print(json.dumps([out, build(sys.argv[1], out, limit)]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
def test_a_file_without_its_last_bytes_stops_the_build(tmp_path: Path) -> None:
    corpus, whole = write_corpus(tmp_path / "c.jsonl", 300, length=30), tmp_path / "whole"
    with corpus.open("a", encoding="utf-8") as file:
        file.write(f"not json {'x' * 40_000}\n")
    with Worker() as worker:
        worker.make("build", corpus, whole)
        files = manifests.load(whole).files
        assert {Path(name).suffix for name in files} == {
            ".jsonl", ".i64", ".txt", ".f32", ".postings", ".faiss",
        }  # fmt: skip
        sizes = [*(record.bytes for record in files.values()), (whole / manifests.NAME).stat().st_size]
        limits = {str(tmp_path / f"i{number}"): size - 100 for number, size in enumerate(sizes)}
        command = [sys.executable, "-c", BUILDS.format(root=str(ROOT)), str(corpus), json.dumps(limits)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        ended = dict(json.loads(line) for line in done.stdout.splitlines())
        assert ended.keys() == limits.keys()
        for out, message in ended.items():
            assert "File too large" in message, message
            assert "ulimit -f" in message
            if Path(out, manifests.NAME).exists():  # from an earlier commit of the same build
                assert not storage.load_checked(Path(out)).build.complete
        last = Path(max(limits, key=lambda out: limits[out]))
        worker.make("build", corpus, last)
        assert content(last) == content(whole)
