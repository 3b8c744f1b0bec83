"""Generations that a commit replaced are released by a thread of their own."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from indexes.interface import Document
from linker.engine import building
from linker.engine.engine import Engine
from linker.engine.following import Retiring
from linker.engine.snapshot import Snapshot


class Watched:
    """Says which thread released it."""

    def __init__(self, released: list[str]) -> None:
        self._released = released

    def __del__(self) -> None:
        self._released.append(threading.current_thread().name)


def test_its_thread_releases_what_it_keeps() -> None:
    retiring, released = Retiring(), list[str]()
    for _ in range(3):
        retiring.put(Watched(released))
    retiring.close()
    retiring.put(Watched(released))
    retiring.close()
    assert released == ["release generations"] * 4
    assert retiring._thread is None


def test_an_engine_hands_over_each_generation_it_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    building.create(tmp_path / "i", encoder="none")
    with Engine.open(tmp_path / "i") as engine:
        kept: list[object] = []
        monkeypatch.setattr(engine._retiring, "put", kept.append)
        engine.add([Document("a", "some text")])
        engine.delete(["a"])
        assert [len(each.collection) for each in kept if isinstance(each, Snapshot)] == [0, 1]
