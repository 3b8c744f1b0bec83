"""Small things that a user meets: the first messages, and input that must not be accepted silently."""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from indexes.interface import IndexesError
from linker.cli.registry import Commands
from linker.engine import building
from linker.training import ready
from tests.helpers import ROOT, linker, write_corpus


@pytest.fixture
def index(tmp_path: Path) -> Path:
    corpus = write_corpus(tmp_path / "c.jsonl", 20)
    linker("index", "build", corpus, "--out", tmp_path / "i")
    return tmp_path / "i"


@pytest.mark.parametrize("columns", ["80", "160"])
def test_help_fits_a_terminal_and_a_bare_command_is_no_error(
    columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for group in ("", "index", "rank", "review", "bucc", "similarity", "sts"):
        shown = linker(*([group, "--help"] if group else [])).stdout
        assert "Show this message and exit." in shown
        assert "..." not in shown.partition("Options:")[2], f"a summary of {group} is cut"
    shown = linker().stdout
    assert shown.index("Search and judge:") < shown.index("  serve ") < shown.index("Link and group:")
    assert "Of other packages:" not in shown, "a command has no heading"


def test_a_hidden_command_is_not_listed() -> None:
    app = typer.Typer(cls=Commands, rich_markup_mode=None)
    app.command("theirs")(lambda: None)
    app.command("secret", hidden=True)(lambda: None)
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "  serve " in shown and "secret" not in shown
    assert shown.index("Of other packages:") < shown.index("  theirs ")


def test_a_text_needs_no_option_and_a_mistake_is_a_line(index: Path, tmp_path: Path) -> None:
    plain, named = (
        linker("search", index, *given, "--json").stdout for given in (["banel"], ["--text", "banel"])
    )
    assert plain == named
    for given in (["banel", "--text", "deras"], ["--text", "banel", "--text", "deras"]):
        assert "give one text" in linker("search", index, *given, check=2).stderr
    assert "give a text or --queries" in linker("search", index, check=2).stderr
    assert (
        "is a file, not the directory of an index"
        in linker("search", tmp_path / "c.jsonl", "banel", check=1).stderr
    )
    assert "has no vectors to tune" in linker("index", "tune", index, "--recall", "0.95", check=1).stderr


def test_the_target_is_checked_before_an_encoder_is_loaded(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "load_encoder", None)
    options = building.BuildOptions(encoder="minilm")
    with pytest.raises(IndexesError, match="already holds an index"):
        building.build([tmp_path / "c.jsonl"], index, options)
    with pytest.raises(IndexesError, match="already holds an index"):
        building.create(index, encoder="minilm")


def completed(words: str, incomplete: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the completions that bash gets after these words."""
    monkeypatch.setenv("_LINKER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"linker {words} {incomplete}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) + 1))
    return linker(check=None).stdout.split()


def test_the_shell_completes_names(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert completed("train", "as", monkeypatch) == [n for n in ready.names() if n.startswith("as")]
    assert completed("train --show", "g", monkeypatch) == ["gru"]
    assert completed("train", "c", monkeypatch) == ["cnn", "c.jsonl"]
    assert completed("encode", f"{tmp_path}/c", monkeypatch) == [f"{tmp_path}/c.jsonl"]
    assert completed("index build x --encoder", "m", monkeypatch) == ["minilm"]
    assert completed(f"search {index} rain --where", "", monkeypatch) == ["group=", "lang="]
    assert completed(f"search {index} rain --where", "la", monkeypatch) == ["lang="]
    assert completed(f"search {index} rain --rerank", "p", monkeypatch) == ["pooled"]
    assert completed("search nowhere rain --where", "", monkeypatch) == []
    assert completed("link a b --method", "hap", monkeypatch) == ["hapax"]


# Commands without a result: one listens until it is stopped, the other speaks a protocol.
WITHOUT_RESULT = {"serve", "mcp"}


def test_every_command_that_prints_a_result_prints_json() -> None:
    from linker.cli import app
    from linker.cli.registry import every as every_command

    every = every_command(app)
    assert every.keys() >= WITHOUT_RESULT
    without = {name for name, c in every.items() if not any("--json" in p.opts for p in c.params)}
    assert without == WITHOUT_RESULT
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z -]+)` \|", page, re.MULTILINE)) == every.keys() - WITHOUT_RESULT
