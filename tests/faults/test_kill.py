"""SIGKILL at random moments of merges and commits loses nothing; a resumed build continues only what it began."""

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.interface import IndexesError
from indexes.store import manifest as manifests
from linker.engine import building
from tests.faults.support import KILLED, Worker, assert_tidy, content
from tests.helpers import write_corpus


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as running:
        yield running


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
def test_kills_while_a_background_merge_and_commits_go_on_lose_nothing(
    tmp_path: Path, worker: Worker
) -> None:
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


def test_resume_refuses_another_corpus_and_other_options(
    tmp_path: Path, corpus: Path, worker: Worker
) -> None:
    out = tmp_path / "out"
    assert worker.ask("build", corpus, out, fault="commit.ended:2")["status"] == KILLED
    with pytest.raises(IndexesError, match="already holds an index"):
        building.build([corpus], out, building.BuildOptions())
    with pytest.raises(IndexesError, match="another `encoder`"):
        building.build([corpus], out, building.BuildOptions(), resume=True)
    corpus.write_text('{"id": "a", "text": "Another one."}\n', encoding="utf-8")
    with pytest.raises(IndexesError, match="have changed since"):
        building.build([corpus], out, building.BuildOptions(), resume=True)
