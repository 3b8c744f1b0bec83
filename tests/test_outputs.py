"""No command replaces a file that it reads, another file that it writes, or a file of an index."""

from __future__ import annotations

from pathlib import Path

import pytest

from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.cli import app
from linker.cli.found import PATHS, WRITTEN, Command, every
from tests.helpers import linker, write_corpus

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


@pytest.mark.parametrize(
    "arguments",
    [
        "search i --queries q.tsv --out q.tsv",
        "search i --queries q.tsv --out i/../q.tsv",
        "search i --queries link.tsv --out q.tsv",
        "search i --queries q.tsv --out link.tsv",
        "find i --seeds q.tsv --static --until 1 --judgements a.qrels --out a.qrels",
        "index export i --npy q.tsv --faiss q.tsv",
        "sts predict minilm q.tsv --out q.tsv",
        "sts predict minilm a.qrels q.tsv --out q.tsv",
        "similarity predict minilm q.tsv --out q.tsv",
        "watch i q.tsv --out q.tsv --resume",
        "align a.qrels q.tsv c.jsonl --out c.jsonl",
    ],
)
def test_an_output_never_replaces_an_input(
    inputs: Path, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inputs)
    before = {path: path.read_bytes() for path in inputs.iterdir() if path.is_file()}
    done = linker(*arguments.split(), check=1)
    assert "name another file" in done.stderr
    assert {path: path.read_bytes() for path in inputs.iterdir() if path.is_file()} == before


def test_a_name_that_is_no_file_is_not_lost(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(inputs)
    assert "name another file" not in linker("train", "bag", "--out", "bag", check=1).stderr


def test_stdout_may_be_written_and_stdin_read(inputs: Path) -> None:
    done = linker("search", inputs / "i", "--queries", inputs / "q.tsv", "--out", "-")
    assert done.stdout.startswith("q1 ") or not done.stdout


@pytest.mark.parametrize("name", ["lock", "manifest.json", "segments/000001/documents.jsonl"])
def test_no_file_of_an_index_is_replaced(inputs: Path, name: str) -> None:
    place = inputs / "i" / name
    assert place.exists()
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
