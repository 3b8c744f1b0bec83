"""`linker group --follow`: documents appended one by one have the groups of grouping all of them, and one log entry."""

import json
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import linker as package
from indexes.interface import Document
from linker.crosslingual.regrouping import regroup
from linker.crosslingual.sides import Side
from linker.engine.arriving import Arriving
from linker.review.watching.arrivals import Appended
from linker.scoring.groups.following import Change, replay
from tests.test_group_arrivals import start
from tests.test_grouping import corpus, partition, read, write


def arriving(
    documents: Sequence[Document], folder: Path, days: float | None = None
) -> tuple[package.Groups, Arriving]:
    side = Side((), {d.id: d for d in documents}, "en")
    groups, _, stream = regroup(side, next_to=folder / "groups.csv", stays=True, days=days)
    assert stream is not None
    stream.start(groups)
    return groups, stream


def test_one_by_one_the_groups_are_those_of_all_documents(tmp_path: Path) -> None:
    """The oracle groups all documents from scratch, and the log makes its groups of the first ones."""
    documents = [corpus()[i] for i in np.random.default_rng(2).permutation(len(corpus())).tolist()]
    groups, stream = arriving(documents[:60], tmp_path)
    told = {m.id: m.group for m in groups.members}
    for document in documents[60:]:
        told = replay(told, stream.add([document]))
    alone = {d.id: -number for number, d in enumerate(documents, start=1) if d.id not in told}
    together = package.group(write(tmp_path / "posts.jsonl", documents))
    found = {
        frozenset(id_ for id_, group in (told | alone).items() if group == one)
        for one in {*told.values(), *alone.values()}
    }
    assert found == partition(together)
    ids, findings = stream.findings()
    assert ids == [d.id for d in documents] and set(findings.one.tolist()) == set(range(len(documents)))


def test_documents_far_apart_in_time_do_not_join(tmp_path: Path) -> None:
    """Posts of a story are two days apart."""
    documents = corpus()
    for days, least in ((1.0, 0), (30.0, 1)):
        _, stream = arriving(documents[:100], tmp_path, days)
        found = [c for d in documents[100:] for c in stream.add([d])]
        same = [c for c in found if {id_[:3] for id_ in c.ids if id_ != "copy"} == {"s29"} and len(c.ids) > 1]
        assert bool(same) == bool(least)


def test_what_arrived_is_not_compared_again_by_the_next_update(tmp_path: Path) -> None:
    documents = corpus()
    _, stream = arriving(documents[:100], tmp_path)
    stream.add(documents[100:103])
    stream.add(documents[103:])
    side = Side((), {d.id: d for d in documents}, "en")
    groups, _, _ = regroup(side, next_to=tmp_path / "groups.csv", since=stream)
    assert groups.metadata["queries"] == 0
    assert partition(groups) == partition(package.group(write(tmp_path / "posts.jsonl", documents)))


def test_only_whole_new_lines_are_appended_documents(tmp_path: Path) -> None:
    posts = write(tmp_path / "posts.jsonl", corpus()[:3])
    with posts.open("a") as file:
        file.write('{"id": "unfinished",')
    appended = Appended([posts])
    assert appended.read() == []
    with posts.open("a") as file:
        file.write(
            ' "text": "one"}\nnot JSON\n{"id": "next", "text": "two"}\n{"id": "waits", "text": "three"}'
        )
    assert [d.id for d in appended.read() or ()] == ["unfinished", "next"]
    assert appended.read() == []
    write(posts, corpus()[1:9])
    assert appended.read() is None
    assert not Appended.can_read(tmp_path) and not Appended.can_read(tmp_path / "posts.csv")


def test_a_killed_stream_of_appended_documents_logs_every_change_once(tmp_path: Path) -> None:
    """The log makes the groups of each table of the table before it; no document joins a group twice."""
    documents, rng = corpus(), random.Random(5)
    posts, out = write(tmp_path / "posts.jsonl", documents[:70]), tmp_path / "groups.jsonl"
    package.group(posts, out, update=True)
    first, log = (
        {str(row["id"]): int(str(row["group"])) for row in read(out)},
        tmp_path / "groups.jsonl.changes.jsonl",
    )
    child: subprocess.Popen[bytes] | None = None
    for number in range(70, len(documents), 10):
        with posts.open("a") as file:
            for d in documents[number : number + 10]:
                file.write(json.dumps({"id": d.id, "text": d.text, **d.metadata}) + "\n")
        child = child or start(posts, out)
        time.sleep(rng.uniform(0, 3))
        if rng.random() < 0.5:
            child.send_signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
            child = None
    if child:
        child.send_signal(signal.SIGINT)
        child.wait()
    package.group(posts, out, update=True)
    lines = [
        Change(c["change"], c["group"], tuple(c["ids"]), c["other"])
        for c in map(json.loads, log.read_text().splitlines())
    ]
    now = {str(row["id"]): int(str(row["group"])) for row in read(out)}
    told = replay(first, lines)
    assert told == {id_: group for id_, group in now.items() if id_ in told}
    # A document that was alone in a table in between has its number from there: others may have joined it since.
    alone = [group for id_, group in now.items() if id_ not in told]
    begun = {line.group for line in lines if line.change == "began"} | {*first.values()}
    assert len(alone) == len(set(alone)) and not {*alone} & begun
    joined = [id_ for c in lines if c.change == "joined" for id_ in c.ids]
    assert len(joined) == len(set(joined)) and len(lines) > 10


def test_an_interrupted_stream_ends_with_a_table_of_everything(tmp_path: Path) -> None:
    documents = corpus()
    posts, out = write(tmp_path / "posts.jsonl", documents[:110]), tmp_path / "groups.jsonl"
    child = start(posts, out)
    while not out.exists():
        time.sleep(0.05)
    time.sleep(1)
    with posts.open("a") as file:
        for d in documents[110:]:
            file.write(json.dumps({"id": d.id, "text": d.text, **d.metadata}) + "\n")
    log = tmp_path / "groups.jsonl.changes.jsonl"
    while not log.exists() or not log.stat().st_size:
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    child.wait()
    assert [row["id"] for row in read(out)] == [d.id for d in documents]
