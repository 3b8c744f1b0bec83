"""Pipes and devices among the inputs: refused or read once, and the first Ctrl-C ends a read that waits."""

import gzip
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.helpers import linker, linker_process

ROOT = Path(__file__).parents[1]
LINE = '{"id": "a", "text": "rain"}\n'
WAITING = """
import sys
from pathlib import Path
from linker.engine.intake import interruptible

def records():
    print("reading", flush=True)
    with Path(sys.argv[1]).open() as pipe:
        print("open", flush=True)
        yield from pipe

with interruptible() as interrupted:
    batch = interrupted.read(records(), 10)
print(batch, interrupted.is_set())
"""


def test_a_pipe_in_a_corpus_folder_is_refused_by_name(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text(LINE, encoding="utf-8")
    os.mkfifo(corpus / "b.jsonl")
    # In a separate process: previously, this waited forever.
    done = linker_process("index", "build", corpus, "--out", tmp_path / "index", check=1)
    assert done.stderr.startswith(f"error: {corpus / 'b.jsonl'} is not a regular file")
    assert not (tmp_path / "index").exists()


def test_a_device_in_a_corpus_folder_is_refused_by_name(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").symlink_to("/dev/zero")
    done = linker("index", "build", corpus, "--out", tmp_path / "index", check=1)
    assert "a.txt is not a regular file" in done.stderr


def test_a_pipe_that_the_user_names_is_read_once(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(LINE, encoding="utf-8")
    linker("index", "build", corpus, "--out", tmp_path / "index")
    qrels, run = tmp_path / "qrels", tmp_path / "run.gz"
    qrels.write_text("q 0 a 1\n", encoding="utf-8")
    for command, data in (
        (["search", str(tmp_path / "index"), "--queries"], b"q\train\n"),
        (["evaluate", str(qrels)], b"q Q0 a 1 1 r\n"),
        (["index", "delete", str(tmp_path / "index"), "--ids"], b"a\n"),
    ):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        linker(*command, pipe)
        writer.join()
        pipe.unlink()
    run.write_bytes(gzip.compress(b"q Q0 a 1 1 r\n"))
    linker("evaluate", qrels, run)
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe or device" in linker(
        "index", "build", tmp_path / "pipe", "--out", tmp_path / "new", check=1
    ).stderr  # fmt: skip


@pytest.mark.parametrize("opened", [False, True])
def test_the_first_ctrl_c_ends_a_read_that_waits(tmp_path: Path, opened: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(pipe)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    if opened:
        writer = os.open(pipe, os.O_WRONLY)
        assert process.stdout.readline() == "open\n"
    process.send_signal(signal.SIGINT)
    try:
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        if opened:
            os.close(writer)
    assert printed == "[] True\n"
    assert process.returncode == 0


def test_a_ctrl_c_between_reads_waits_for_the_batch_in_hand() -> None:
    from linker.engine.intake import Interruption, interruptible

    with interruptible() as interrupted:
        assert interrupted.read(iter("abc"), 2) == ["a", "b"]
        assert not interrupted.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert isinstance(interrupted, Interruption)
