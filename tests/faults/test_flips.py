"""A flipped byte, a truncated file or a missing file: `verify` names it, and opening the index fails."""

import functools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from indexes import stored_vectors
from indexes.collection import Collection
from indexes.interface import DamagedError, Document, IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import Writer
from linker.engine import Engine, building
from tests.helpers import HashEncoder, linker, write_corpus


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with every kind of file: two segments, deletions, quarantine, a graph."""
    folder = tmp_path_factory.mktemp("flips")
    corpus = write_corpus(folder / "c.jsonl", 500, length=4)
    with corpus.open("a", encoding="utf-8") as file:
        file.write("not json\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
        building.build(
            [corpus],
            folder / "i",
            building.BuildOptions(encoder="hash", vectors="hnsw", batch_size=100, commit_every=300),
        )
    engine = Engine(folder / "i", encoder=HashEncoder())
    engine.add([Document("new", "a later document")])
    engine.delete(["d5", "d6"])
    assert kinds(folder / "i") == {"segments", "text", "deleted", "quarantine", "graph"}
    assert len(engine.collection.manifest.segments) == 2
    return folder / "i"


@pytest.fixture(scope="module", autouse=True)
def small_graphs() -> Iterator[None]:
    """Let an index of few documents have a graph."""
    with mock.patch.object(stored_vectors, "FaissIndex", functools.partial(FaissIndex, exact_below=100)):
        yield


@pytest.fixture(scope="module")
def compacted(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compacted") / "i"
    shutil.copytree(sound, out)
    with Writer.open(out) as writer:
        writer.compact()
    assert kinds(out) == {"segments", "text", "quarantine", "graph"}
    return out


def kinds(out: Path) -> set[str]:
    return {name.partition("/")[0] for name in manifests.load(out).files}


@pytest.mark.slow
@pytest.mark.parametrize("state", ["sound", "compacted"])
def test_flips_and_cuts_are_refused(state: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    copy = tmp_path / "i"
    shutil.copytree(request.getfixturevalue(state), copy)
    rng = random.Random(3)
    # The lock marks the directory's owner; no result depends on its content.
    paths = [p for p in sorted(copy.rglob("*")) if p.is_file() and p.name != storage.LOCK]
    assert len(paths) >= 8
    for path in paths:
        data = path.read_bytes()
        for place in {0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(2))}:
            damaged = bytearray(data)
            damaged[place] ^= 1 << rng.randrange(8)
            check_refused(copy, path, bytes(damaged))
        for length in {0, rng.randrange(len(data)), len(data) - 1}:
            check_refused(copy, path, data[:length])
        path.unlink()
        with pytest.raises(IndexesError, match=copy.name if path.name == manifests.NAME else path.name):
            Collection.open(copy)
        path.write_bytes(data)
    Collection.open(copy)


def check_refused(copy: Path, path: Path, damaged: bytes) -> None:
    path.write_bytes(damaged)
    with pytest.raises(DamagedError, match=path.name):
        Collection.open(copy)
    with pytest.raises(DamagedError, match=path.name), Writer.open(copy):
        pass
    if path.name != manifests.NAME:
        (line,) = storage.damage(copy, manifests.load(copy))
        assert str(path) in line


def test_verify_command_names_the_file_and_fails(sound: Path, tmp_path: Path) -> None:
    copy = tmp_path / "i"
    shutil.copytree(sound, copy)
    assert "files, all as they were written" in linker("index", "verify", copy).stdout
    victim = next(p for p in sorted(copy.rglob("*")) if p.name == "vectors.f32")
    victim.write_bytes(victim.read_bytes()[:-1])
    done = linker("index", "verify", copy, check=1)
    assert str(victim) in done.stdout
    assert str(victim) in linker("search", copy, "--text", "banel", check=1).stderr
    (copy / manifests.NAME).write_bytes(b"{}")
    assert manifests.NAME in linker("index", "verify", copy, check=1).stderr
