"""No command replaces a file that it reads; pipes and devices among the inputs are refused or read once."""

import gzip
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.cli import app
from linker.cli.registry import PATHS, WRITTEN, Command, every
from tests.helpers import linker, linker_process, write_corpus

COMMANDS = every(app)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_guarded(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Command)
    for parameter in command.params:
        help_text = getattr(parameter, "help", None) or ""
        if parameter.type.name in PATHS and help_text.startswith("Write") and "folder" not in help_text:
            assert parameter.name in WRITTEN, parameter.name


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A folder with an index of three documents, and files that can be queries, seeds or judgements."""
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 3), "--out", tmp_path / "i")
    (tmp_path / "q.tsv").write_text("q1\train\n", encoding="utf-8")
    (tmp_path / "a.qrels").write_text("q1 0 d1 1\n", encoding="utf-8")
    (tmp_path / "link.tsv").symlink_to("q.tsv")
    return tmp_path


REPLACING = """
search i --queries q.tsv --out q.tsv
search i --queries q.tsv --out i/../q.tsv
search i --queries link.tsv --out q.tsv
search i --queries q.tsv --out link.tsv
find i --seeds q.tsv --static --until 1 --judgements a.qrels --out a.qrels
index export i --npy q.tsv --faiss q.tsv
sts predict minilm q.tsv --out q.tsv
sts predict minilm a.qrels q.tsv --out q.tsv
similarity predict minilm q.tsv --out q.tsv
watch i q.tsv --out q.tsv --resume
align a.qrels q.tsv c.jsonl --out c.jsonl
"""


def test_an_output_never_replaces_an_input(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(inputs)
    before = {path: path.read_bytes() for path in inputs.iterdir() if path.is_file()}
    for arguments in REPLACING.strip().splitlines():
        assert "name another file" in linker(*arguments.split(), check=1).stderr, arguments
    assert {path: path.read_bytes() for path in inputs.iterdir() if path.is_file()} == before
    # a name that is not a file is not lost, and stdout may be written
    assert "name another file" not in linker("train", "bag", "--out", "bag", check=1).stderr
    done = linker("search", "i", "--queries", "q.tsv", "--out", "-")
    assert done.stdout.startswith("q1 ") or not done.stdout


def test_no_file_of_an_index_is_replaced(inputs: Path) -> None:
    for name in ("lock", "manifest.json", "segments/000001/documents.jsonl"):
        place = inputs / "i" / name
        before = place.read_bytes()
        done = linker("search", inputs / "i", "--queries", inputs / "q.tsv", "--out", place, check=1)
        assert f"{place} is a file of the index {inputs / 'i'}" in done.stderr
        assert place.read_bytes() == before


def test_other_files_may_lie_in_an_index_or_have_its_names_elsewhere(inputs: Path) -> None:
    for place in (inputs / "i" / "notes.txt", inputs / "lock", inputs / "manifest.json"):
        write_atomically(place, b"mine")
        assert place.read_bytes() == b"mine"
    with pytest.raises(InputError):
        write_atomically(inputs / "i" / "deleted" / "000001.i64", b"not mine")


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
