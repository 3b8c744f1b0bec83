"""`linker group --follow`: groups of a stream, and killed at random moments, each change in the log once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import linker as package
from tests.helpers import ROOT
from tests.test_grouping import corpus, read, write


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
