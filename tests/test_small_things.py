"""Small things that a user meets: what is said first, and what must not be taken silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexes.interface import IndexesError
from linker import building
from tests.helpers import linker, write_corpus


@pytest.fixture
def index(tmp_path: Path) -> Path:
    corpus = write_corpus(tmp_path / "c.jsonl", 20)
    linker("index", "build", corpus, "--out", tmp_path / "i")
    return tmp_path / "i"


def test_a_bare_command_helps_and_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = linker(check=0).stdout
    assert "rank " in shown
    assert "..." not in shown.partition("Commands:")[2]


def test_a_text_needs_no_option(index: Path) -> None:
    plain, named = (
        linker("search", index, *given, "--json").stdout for given in (["banel"], ["--text", "banel"])
    )
    assert plain == named
    for given in (["banel", "--text", "deras"], ["--text", "banel", "--text", "deras"]):
        assert "give one text" in linker("search", index, *given, check=2).stderr
    assert "either a text or --queries" in linker("search", index, check=2).stderr


def test_a_file_is_no_index(index: Path, tmp_path: Path) -> None:
    assert (
        "is a file, not the directory of an index"
        in linker("search", tmp_path / "c.jsonl", "banel", check=1).stderr
    )


def test_an_index_without_vectors_has_nothing_to_tune(index: Path) -> None:
    assert "has no vectors to tune" in linker("index", "tune", index, "--recall", "0.95", check=1).stderr


def test_the_target_is_checked_before_an_encoder_is_loaded(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "load_encoder", None)
    options = building.BuildOptions("minilm")
    with pytest.raises(IndexesError, match="already holds an index"):
        building.build([tmp_path / "c.jsonl"], index, options)
    with pytest.raises(IndexesError, match="already holds an index"):
        building.create(index, encoder="minilm")
