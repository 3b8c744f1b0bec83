"""Jobs of a review: a child process that reports progress, leaves no trace if cancelled, ends with its parent."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linker.corpora import Columns
from linker.engine.engine import Engine
from linker.review.ledger import Ledger
from linker.review.project import Project, Workspace
from linker.server.jobs import points as map_file
from linker.server.jobs.indexing import SEEDS_QUARANTINE, UploadedFile, specification, unfinished
from linker.server.jobs.job import Job, Step

DEADLINE = 60.0


def posts(path: Path, count: int) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["tweet", "content", "date"])
        rows.writerows(
            [f"t{i}", f"heavy rain number {i} floods the town", "2026-03-02"] for i in range(count)
        )
    return path


def project(tmp_path: Path) -> Project:
    return Workspace(tmp_path / "reviews").create("Floods")


def start(made: Project, path: Path, articles: list[UploadedFile] | None = None) -> Job:
    source = UploadedFile(path, Columns("tweet", "content"))
    return Job("index", specification(made, [source], articles or []), unfinished(made))


def test_files_become_an_index_and_seeds(tmp_path: Path) -> None:
    made = project(tmp_path)
    articles = tmp_path / "articles.csv"
    articles.write_text("id,title,text\na1,Floods,Heavy rain floods Valencia\na2,,\na1,Again,The same id\n")
    job = start(made, posts(tmp_path / "posts.csv", 50), [UploadedFile(articles, Columns(title="title"))])
    assert job.wait(DEADLINE) == "done", job.error
    assert job.result == {"documents": 50, "quarantined": 0, "seeds": 1, "bad_seeds": 2}
    assert len(Engine(made.index)) == 50
    assert [s.id for s in Ledger(made.ledger).seeds] == ["a1"]
    unused = (made.own_folder / SEEDS_QUARANTINE).read_text()
    assert "text and title are empty" in unused and "duplicate id 'a1'" in unused
    assert not any(path.exists() for path in unfinished(made))


def test_more_posts_are_added_to_the_index(tmp_path: Path) -> None:
    made = project(tmp_path)
    assert start(made, posts(tmp_path / "posts.csv", 5)).wait(DEADLINE) == "done"
    job = start(made, posts(tmp_path / "more.csv", 8))  # five of them are there already
    assert job.wait(DEADLINE) == "done", job.error
    assert (job.result["documents"], job.result["quarantined"]) == (8, 5)


def test_what_is_wrong_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    made = project(tmp_path)
    (tmp_path / "posts.csv").write_text("a,b\n1,2\n")
    job = start(made, tmp_path / "posts.csv")
    assert job.wait(DEADLINE) == "failed"
    assert "no column tweet" in job.error
    assert not made.index.exists()
    assert not any(path.exists() for path in unfinished(made))


def wait_for(job: Job, what: str) -> Step:
    end = time.monotonic() + DEADLINE
    while job.step.what != what and time.monotonic() < end:
        assert job.state == "running", job.error
        time.sleep(0.01)
    return job.step


def test_cancelling_leaves_nothing(tmp_path: Path) -> None:
    made = project(tmp_path)
    job = start(made, posts(tmp_path / "posts.csv", 60_000))
    step = wait_for(job, "indexing")
    assert step.total == 60_000
    job.cancel()
    assert job.state == "cancelled"
    assert not made.index.exists()
    assert not any(path.exists() for path in unfinished(made))
    assert start(made, posts(tmp_path / "posts.csv", 5)).wait(DEADLINE) == "done"


PARENT = """
import sys, time
from pathlib import Path
from linker.corpora import Columns
from linker.server.jobs.indexing import UploadedFile, specification, unfinished
from linker.server.jobs.job import Job
from linker.review.project import Workspace
made = Workspace(Path(sys.argv[1])).project("floods")
source = UploadedFile(Path(sys.argv[2]), Columns("tweet", "content"))
job = Job("index", specification(made, [source]), unfinished(made))
while job.step.what != "indexing": time.sleep(.01)
print(job.pid, flush=True)
time.sleep(600)
"""


def test_a_job_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    made = project(tmp_path)
    path = posts(tmp_path / "posts.csv", 60_000)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "reviews"), str(path)], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    end = time.monotonic() + DEADLINE
    while is_running(child):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not made.ready
    assert start(made, posts(tmp_path / "few.csv", 5)).wait(DEADLINE) == "done"
    assert not any(path.exists() for path in unfinished(made))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_map_places_alike_texts_near_each_other(tmp_path: Path) -> None:
    opened = project(tmp_path)
    texts = [f"rain floods the old town street {i % 7}" for i in range(30)]
    texts += [f"striker scores twice in cup final match {i % 7}" for i in range(30)]
    path = tmp_path / "posts.csv"
    path.write_text("tweet,content\n" + "".join(f"t{i},{t}\n" for i, t in enumerate(texts)))
    assert start(opened, path).wait(DEADLINE) == "done"
    out = opened.own_folder / "map.bin"
    job = Job("map", {"index": str(opened.index), "out": str(out), "seed": 1})
    assert job.wait(DEADLINE) == "done", job.error
    ids, coordinates, generation = map_file.load(out)
    assert (len(ids), generation) == (60, 1)
    places = map_file.places(coordinates).astype(float)
    floods = [int(id_[1:]) < 30 for id_ in ids]
    for i, place in enumerate(places):
        distances = ((places - place) ** 2).sum(axis=1)
        distances[i] = distances.max() + 1
        nearest = distances.argsort()[:5]
        assert sum(floods[j] == floods[i] for j in nearest) >= 4


@pytest.mark.parametrize("content", [b"", b"{}\n", b'{"ids": ["a"], "generation": 1}\n\0\0'])
def test_a_damaged_map_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "map.bin").write_bytes(content)
    with pytest.raises(Exception, match=r"map\.bin"):
        map_file.load(tmp_path / "map.bin")


def test_a_step_says_how_long_it_will_take() -> None:
    assert Step("indexing", 25, 100, 10.0).remaining == pytest.approx(30.0)
    assert Step("reading", 25, None, 10.0).remaining is None
    assert Step("reading", 0, 100, 10.0).remaining is None
