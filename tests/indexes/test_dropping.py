"""Deleting an index: all of it, nothing else, and only when intended."""

import fcntl
from pathlib import Path
from typing import IO

import pytest

from indexes import dropping
from indexes.interface import Document, IndexesError, LockedError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import ownership
from linker.engine.building import create
from linker.engine.engine import Engine
from tests.helpers import linker


def filled(directory: Path) -> Path:
    create(directory)
    Engine(directory).add([Document("a", "one"), Document("b", "two")])
    return directory


def test_an_index_goes_with_its_directory(tmp_path: Path) -> None:
    out = filled(tmp_path / "i")
    assert linker("index", "drop", out, "--yes").stdout == f"{out}: deleted, with 2 documents\n"
    assert not out.exists()
    filled(out)
    assert '"documents":2' in linker("index", "drop", out, "-y", "--json").stdout


def test_without_a_yes_nothing_happens(tmp_path: Path) -> None:
    out = filled(tmp_path / "i")
    done = linker("index", "drop", out, check=1)  # and no terminal for a prompt
    assert f"delete {out} with 2 documents?" in done.stderr
    assert len(Engine(out)) == 2


def test_what_is_no_index_and_what_is_in_use_is_refused(tmp_path: Path) -> None:
    assert "holds no index" in linker("index", "drop", tmp_path, "--yes", check=1).stderr
    out = filled(tmp_path / "i")
    with storage.write_lock(out), pytest.raises(LockedError, match="this process"):
        dropping.drop(out)
    assert len(Engine(out)) == 2


def test_a_lock_that_was_dropped_locks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process waits for the lock of an index while another drops it and a third makes a new index."""
    (tmp_path / storage.LOCK).touch()
    flock = fcntl.flock

    def late(file: IO[bytes], how: int) -> None:
        (tmp_path / storage.LOCK).unlink()
        (tmp_path / storage.LOCK).touch()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(LockedError), storage.write_lock(tmp_path):
        pass


def test_an_interrupted_drop_leaves_no_damaged_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = filled(tmp_path / "i")
    with monkeypatch.context() as patch:
        patch.setattr(ownership, "sweep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            dropping.drop(out)
    with pytest.raises(IndexesError, match="holds no index"):
        manifests.load(out)
    assert len(Engine(filled(out))) == 2
