"""The ledger of before, one JSON object per line: what `linker find` imports."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.errors import InputError
from linker.review.jsonl_ledger import Judgement, Ledger


def test_a_torn_last_line_is_dropped_and_the_file_stays_usable(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger = Ledger(path)
    ledger.add(Judgement("s", "a", 1, 0.5))
    ledger.add(Judgement("s", "b", 0, 0.25))
    os.truncate(path, path.stat().st_size - 7)
    survived = Ledger(path)
    assert survived.judgements == (Judgement("s", "a", 1, 0.5),)
    survived.add(Judgement("s", "b", 1, 0.25))
    assert [j.id for j in Ledger(path).judgements] == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[1]",
        '{"seed": "s"}',
        '{"undo": true}',
        '{"seed": ["s"], "id": "a", "relevance": 1, "score": 0.5}',
    ],
)
def test_an_unreadable_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "l"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"l:1: not a judgement"):
        Ledger(path)


def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    for content in ("one\ntwo, no newline", "no newline at all"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match="not a judgement"):
            Ledger(path)
        assert path.read_text(encoding="utf-8") == content


def test_a_whole_last_line_without_its_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "l"
    Ledger(path).add(Judgement("s", "a", 1, 0.5))
    os.truncate(path, path.stat().st_size - 1)
    again = Ledger(path)
    again.add(Judgement("s", "b", 0, 0.5))
    assert [j.id for j in Ledger(path).judgements] == ["a", "b"]


@given(st.lists(st.sampled_from([0, 1, "undo"]), max_size=30))
def test_a_reopened_ledger_is_the_one_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, moves: list[int | str]
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "l"
    ledger, expected = Ledger(path, durable=False), list[int]()
    for number, move in enumerate(moves):
        if isinstance(move, int):
            ledger.add(Judgement("s", f"d{number}", move, 0.0))
            expected.append(move)
        elif ledger.undo() is not None:
            expected.pop()
    assert [j.relevance for j in ledger.judgements] == expected
    assert (Ledger(path).judgements if path.exists() else ()) == ledger.judgements
