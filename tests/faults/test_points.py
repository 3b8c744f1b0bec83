"""SIGKILL at every fault point of every change: all or nothing, and repeating the change ends as if undisturbed."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexes.store import manifest as manifests
from tests.faults.support import KILLED, Worker, assert_tidy, content
from tests.helpers import ROOT, write_corpus

BUILDS = ("build", "build fields")
CHANGES = (*BUILDS, "add", "delete", "apply", "merge", "compact", "store a ranker")
POINTS = {
    name
    for package in ("indexes", "linker")
    for path in (ROOT / package).rglob("*.py")
    for name in re.findall(r'faults\.point\("([^"]+)"\)', path.read_text(encoding="utf-8"))
    # These are passed only with a server, or when a model is saved (tests/encoders/test_model_folder.py).
    if not name.startswith(("elastic.", "model."))
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, worker: Worker) -> Path:
    """Corpora, a list of ids, and an index over which every change passes all of its steps."""
    folder = tmp_path_factory.mktemp("points")
    write_corpus(folder / "c.jsonl", 200)
    with (folder / "c.jsonl").open("a", encoding="utf-8") as file:
        file.write('not json\n{"id": "d3", "text": "an id twice"}\n')
    write_corpus(folder / "more.jsonl", 90, seed=1, prefix="m")
    with (folder / "more.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "d7", "text": "another text for it"}\nnot json\n')
    (folder / "first").write_text("d1 d2", encoding="utf-8")
    (folder / "ids").write_text("d5 d6 d199", encoding="utf-8")
    (folder / "ranker").mkdir()
    for name in ("config.json", "model.txt"):  # a search would refuse these; a copy does not read them
        (folder / "ranker" / name).write_text(name, encoding="utf-8")
    worker.make("build", folder / "c.jsonl", folder / "base")
    worker.make("delete", folder / "first", folder / "base")
    shutil.copytree(folder / "base", folder / "several")  # segments
    worker.make("add", folder / "more.jsonl", folder / "several")
    return folder


def arguments(change: str, folder: Path) -> list[Path]:
    named = {
        "build": "c.jsonl", "build fields": "c.jsonl", "add": "more.jsonl", "delete": "ids",
        "apply": "ids", "store a ranker": "ranker",
    }  # fmt: skip
    return [folder / named[change]] if change in named else []


def begin(change: str, folder: Path, out: Path) -> dict[str, Any] | None:
    """Create the initial state for the change; return its content."""
    shutil.rmtree(out, ignore_errors=True)
    if change in BUILDS:
        return None
    shutil.copytree(folder / ("several" if change == "merge" else "base"), out)
    return content(out)


def test_every_point_is_passed(folder: Path, worker: Worker, tmp_path: Path) -> None:
    passed: set[str] = set()
    for change in CHANGES:
        begin(change, folder, tmp_path / "i")
        passed |= worker.make(change, *arguments(change, folder), tmp_path / "i").keys()
    assert passed == POINTS
    assert len(POINTS) > 15


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_killed_at_each_point(change: str, folder: Path, worker: Worker, tmp_path: Path) -> None:
    out, given = tmp_path / "i", arguments(change, folder)
    before = begin(change, folder, out)
    passed = worker.make(change, *given, out)
    after = content(out)
    assert (after == before) == (change == "merge")
    for point, times in passed.items():
        for passing in sorted({(times + 1) // 2, times}):
            begin(change, folder, out)
            assert worker.ask(change, *given, out, fault=f"{point}:{passing}")["status"] == KILLED
            committed = content(out) if (out / manifests.NAME).exists() else None
            if change in BUILDS:
                assert is_beginning(committed, after), point
            else:
                assert committed in (before, after), point
            if committed == after:
                worker.make("compact", out)
            else:
                worker.make(change, *given, out)
                assert content(out) == after, point
            assert_tidy(out)  # the next writer removed any leftovers


def is_beginning(found: dict[str, Any] | None, whole: dict[str, Any]) -> bool:
    if found is None:
        return True
    documents, vectors = found["documents"], found["vectors"]
    same: bool = documents == whole["documents"][: len(documents)]
    return same and vectors == whole["vectors"][: len(vectors)] and len(vectors) == 64 * len(documents)
