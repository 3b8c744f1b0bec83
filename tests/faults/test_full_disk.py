"""A disk that fills up in the middle of a build: a clear message, nothing half-written, and the build goes on."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes import manifest as manifests
from indexes import storage
from indexes.collection import Collection
from tests.helpers import linker, write_corpus


def mount(folder: Path, size: str, *options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs here (needs root): {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    mount(folder, "3m")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_build_stops_with_a_message_and_resumes(small_disk: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 20_000, length=40)
    out = small_disk / "i"
    arguments = ("index", "build", corpus, "--out", out, "--commit-every", "1000", "--batch-size", "200")
    failed = linker(*arguments, check=1)
    assert "No space left" in failed.stderr
    assert "--resume" in failed.stderr
    manifest = storage.load_checked(out)
    assert 0 < manifest.documents < 20_000
    assert len(Collection.open(out).rows) == manifest.documents

    mount(small_disk, "64m", "remount")
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


def test_no_room_for_the_first_byte(small_disk: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 10)
    descriptor = os.open(small_disk / "filler", os.O_CREAT | os.O_WRONLY)
    with pytest.raises(OSError, match="No space"):
        while os.write(descriptor, b"x" * 4096):
            pass
    os.close(descriptor)
    failed = linker("index", "build", corpus, "--out", small_disk / "i", check=1)
    assert "No space left" in failed.stderr
    assert not (small_disk / "i" / manifests.NAME).exists()
