"""SIGKILL at every fault point of every change: all or nothing, and repeating the change ends as if undisturbed."""

import random
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexes.interface import IndexesError
from indexes.store import manifest as manifests
from linker.engine import building
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


def begin(change: str, folder: Path, out: Path) -> None:
    """Create the initial state for the change."""
    shutil.rmtree(out, ignore_errors=True)
    if change not in BUILDS:
        shutil.copytree(folder / ("several" if change == "merge" else "base"), out)


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
    begin(change, folder, out)
    before = None if change in BUILDS else content(out)
    passed = worker.make(change, *given, out)
    after = content(out)
    assert (after == before) == (change == "merge")
    for point, times in passed.items():
        for passing in sorted({(times + 1) // 2, times} if change != "build fields" else {times}):
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


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = write_corpus(tmp_path / "c.jsonl", 1500)
    lines = path.read_text(encoding="utf-8").splitlines()
    for place in range(0, len(lines), 100):
        lines[place] = lines[place][:-20]  # not JSON
        lines[place + 1] = lines[place + 2]  # a duplicate id
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
def test_kills_during_a_background_merge_and_commits_lose_nothing(tmp_path: Path, worker: Worker) -> None:
    base, out, acknowledged = tmp_path / "base", tmp_path / "i", tmp_path / "acknowledged"
    worker.make("build", write_corpus(tmp_path / "c.jsonl", 100), base)
    shutil.copytree(base, out)
    begin = time.monotonic()
    passed = worker.make("stream", acknowledged, out)
    duration, whole = time.monotonic() - begin, content(out)
    assert passed["merge.ended"] > 0
    assert len(manifests.load(out).segments) < 4
    moments = [f"{point}:1" for point in passed if point.startswith("merge.")] + [""] * 8
    rng, kills = random.Random(3), 0
    for fault in moments:
        shutil.rmtree(out)
        shutil.copytree(base, out)
        acknowledged.write_text("", encoding="utf-8")
        after = None if fault else rng.uniform(0.2 * duration, duration)
        kills += worker.ask("stream", acknowledged, out, fault=fault, after=after)["status"] == KILLED
        found, durable = content(out)["documents"], acknowledged.read_text(encoding="utf-8").split()
        assert found == whole["documents"][: len(found)]
        assert not durable or durable[-1] in {document.id for document in found}
        for change in ("merge", "compact"):
            worker.make(change, out)
            assert content(out)["documents"] == found
        assert_tidy(out)
    assert kills > 4


def test_resuming_a_finished_build_changes_nothing(tmp_path: Path, corpus: Path) -> None:
    out = tmp_path / "out"
    first = building.build([corpus], out, building.BuildOptions())
    before = (out / manifests.NAME).read_bytes()
    again = building.build([corpus], out, building.BuildOptions(), resume=True)
    assert (again.documents, again.added, again.quarantined) == (first.documents, 0, 0)
    assert (out / manifests.NAME).read_bytes() == before


def test_resume_refuses_another_corpus_and_options(tmp_path: Path, corpus: Path, worker: Worker) -> None:
    out = tmp_path / "out"
    assert worker.ask("build", corpus, out, fault="commit.ended:2")["status"] == KILLED
    with pytest.raises(IndexesError, match="already holds an index"):
        building.build([corpus], out, building.BuildOptions())
    with pytest.raises(IndexesError, match="another `encoder`"):
        building.build([corpus], out, building.BuildOptions(), resume=True)
    corpus.write_text('{"id": "a", "text": "Another one."}\n', encoding="utf-8")
    with pytest.raises(IndexesError, match="have changed since"):
        building.build([corpus], out, building.BuildOptions(), resume=True)
