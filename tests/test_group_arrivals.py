"""Incremental grouping, also after the stream is killed, gives the same groups as grouping everything at once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linker as package
from indexes.interface import Document
from linker.base.errors import InputError
from linker.scoring.groups import last_grouping
from linker.scoring.groups.finding import gather
from tests.helpers import ROOT
from tests.test_grouping import corpus, engine, partition, read, write

__all__ = ["engine"]


def test_few_documents_are_queries_when_few_arrive_and_the_groups_are_those_of_all(tmp_path: Path) -> None:
    documents, out = corpus(), tmp_path / "groups.jsonl"
    posts = tmp_path / "posts.jsonl"
    for end in (110, 112, 115, 116, len(documents)):
        together = package.group(write(posts, documents[:end]))
        arrived = package.group(posts, out, update=True)
        assert partition(arrived) == partition(together)
        assert [m.id for m in arrived.members] == [d.id for d in documents[:end]]
        assert (arrived.metadata["queries"] == end) == (end == 110)
    assert arrived.metadata["queries"] < 60
    assert package.group(posts, out, update=True).metadata["queries"] == 0
    (tmp_path / "other.csv.state").touch()
    with pytest.raises(InputError, match=r"cannot write the folder .*other\.csv\.state"):
        package.group(posts, tmp_path / "other.csv", update=True)


def test_without_its_folder_or_after_many_changes_the_table_is_that_of_a_new_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apart from the numbers, which stay."""
    documents, posts = corpus(), tmp_path / "posts.jsonl"
    changed = [
        *documents[3:119],
        Document("s00p0", "bolenant karomern", "", {"date": "2024-01-02"}),
        documents[120],
    ]
    tables = []
    for name, most in (("always", 0.0), ("seldom", 1.0), ("new", 1.0)):
        monkeypatch.setattr(last_grouping, "CHANGED", most)
        out = tmp_path / f"{name}.jsonl"
        if name != "new":
            package.group(write(posts, documents[:119]), out, update=True)
        groups = package.group(write(posts, changed), out, update=True)
        assert (groups.metadata["queries"] == len(changed)) == (name != "seldom")
        tables.append([{**row, "group": 0} for row in read(out)])
    assert tables[0] == tables[2]
    assert [row["id"] for row in tables[1]] == [d.id for d in changed]
    assert tables[1] != tables[2]  # removed documents still count towards idf


def test_an_index_is_not_copied_and_its_new_documents_are_queries(tmp_path: Path) -> None:
    documents, directory, out = corpus(), tmp_path / "index", tmp_path / "groups.csv"
    package.create(directory, encoder="none", language="english", positions=True)
    with package.Engine.open(directory) as opened:
        opened.add(documents[:110])
        package.group(directory, out, update=True)
        opened.add(documents[110:])
        opened.delete([documents[5].id])
        arrived, together = package.group(directory, out, update=True), package.group(directory)
    assert 11 <= arrived.metadata["queries"] < len(arrived.members)
    assert partition(arrived) == partition(together)
    assert [path.name for path in (tmp_path / "groups.csv.state").iterdir()] == ["findings.npz"]


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, len(corpus()) - 1)))
def test_if_index_is_the_same_some_queries_find_what_all_find(engine: package.Engine, some: set[int]) -> None:
    """The oracle looks up candidates for every document; those that are looked up again have the same ones."""
    rows, texts = engine.collection.rows.locate([d.id for d in corpus()]), [d.full_text for d in corpus()]
    days = np.full(len(rows), np.nan)
    pairs, found, queries = gather(engine.collection, rows, texts, days)
    assert queries == len(rows)
    asked = np.isin(np.arange(len(rows)), list(some))
    again, _, queries = gather(
        engine.collection, rows, texts, days, known=(found.where(~asked[found.one]), asked)
    )
    assert len(some) <= queries <= len(rows)
    for name in ("pairs", "values", "last"):
        assert (getattr(again, name) == getattr(pairs, name)).all()


def test_a_killed_stream_has_each_change_once_and_ends_as_an_unkilled_one(tmp_path: Path) -> None:
    """Four states of a corpus arrive; the process is killed while it works on each of them, and at rest."""
    documents, rng = corpus(), random.Random(3)
    states = [documents[8:60], documents[4:90], documents[2:120], documents[3:]]
    plain, killed = tmp_path / "plain.jsonl", tmp_path / "killed.jsonl"
    followed, expected = tmp_path / "groups.jsonl", tmp_path / "expected.jsonl"
    child = None
    for state in states:
        write(plain, state)
        package.group(plain, expected, update=True)
        write(tmp_path / "next", state).replace(killed)
        for moment in (rng.uniform(0, 2.5), None):
            child = child or start(killed, followed)
            if moment is None:
                wait(child, followed, {d.id for d in state})
            else:
                time.sleep(moment)
            if moment is not None or rng.random() < 0.5:
                child.send_signal(signal.SIGKILL)
                assert child.wait() == -signal.SIGKILL
                child = None
        assert followed.read_bytes() == expected.read_bytes()
    if child:
        child.kill()
        child.wait()
    log, once = (path.with_name(path.name + ".changes.jsonl") for path in (followed, expected))
    assert log.read_bytes() == once.read_bytes()
    assert {"began", "joined", "left"} <= {change["change"] for change in read(log)}


def start(source: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "linker", "group", str(source), "--out", str(out), "--follow"]
    # A shell's background job, and its children, ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return subprocess.Popen(
            command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL
        )
    finally:
        signal.signal(signal.SIGINT, before)


def wait(child: subprocess.Popen[bytes], out: Path, ids: set[str]) -> None:
    """Wait until a table has these documents; the table is replaced after the log."""
    while not out.exists() or {str(row["id"]) for row in read(out)} != ids:
        assert child.poll() is None, "it ended"
        time.sleep(0.05)
