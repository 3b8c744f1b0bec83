"""Ledgers of before (JSON lines) come into the new one with what stood in them, whole or cut by a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linker.errors import InputError
from linker.review.interface import Judgement
from linker.review.ledger import Ledger
from linker.review.old_ledger import import_jsonl

TIME = "2025-03-04T05:06:07+00:00"
UNDO = json.dumps({"undo": True, "time": TIME})


def line(id_: str, relevance: int = 1) -> str:
    return json.dumps({"seed": "s", "id": id_, "relevance": relevance, "score": 0.5, "time": TIME})


def expected(id_: str, relevant: bool = True) -> Judgement:
    return Judgement("s", id_, "relevant" if relevant else "not", "ana", score=0.5, time=TIME)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "l")


def test_what_stood_comes_in_once(tmp_path: Path, ledger: Ledger) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text("\n".join([line("a"), line("b"), UNDO, line("c", 0), ""]), encoding="utf-8")
    assert import_jsonl(old, ledger, "ana") == (2, 0)
    assert ledger.judgements() == (expected("a"), expected("c", False))
    assert import_jsonl(old, ledger, "ana") == (0, 2)
    assert len(ledger.history()) == 2
    old.write_text("", encoding="utf-8")
    assert import_jsonl(old, ledger) == (0, 0)


@pytest.mark.parametrize("cut", [-3, -1, "zeros", "its beginning is zeros"])
def test_a_torn_last_line_is_left_out_and_a_whole_one_without_its_newline_is_not(
    tmp_path: Path, ledger: Ledger, cut: int | str
) -> None:
    old, second = tmp_path / "old.jsonl", line("b") + "\n"
    tail = {"zeros": "\0" * 40, "its beginning is zeros": "\0" * 20 + second[20:]}
    torn = tail[cut] if isinstance(cut, str) else second[:cut]
    old.write_text(line("a") + "\n" + torn, encoding="utf-8")
    import_jsonl(old, ledger, "ana")
    assert [j.id for j in ledger.judgements()] == (["a", "b"] if cut == -1 else ["a"])
    old.write_text(torn, encoding="utf-8")  # the only line of its file
    assert import_jsonl(old, ledger, "ben")[0] == (1 if cut == -1 else 0)


@pytest.mark.parametrize(
    "bad",
    ["nonsense", "[1]", '{"seed": "s"}', UNDO, '{"seed": ["s"], "id": "a", "relevance": 1, "score": 1}'],
)
def test_an_unreadable_line_is_named_and_nothing_is_taken(tmp_path: Path, ledger: Ledger, bad: str) -> None:
    old = tmp_path / "old.jsonl"
    place = 1 if bad == UNDO else 2
    old.write_text(("" if bad == UNDO else line("a") + "\n") + bad + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"old.jsonl:{place}: not a judgement"):
        import_jsonl(old, ledger)
    old.write_text("notes without a newline", encoding="utf-8")
    with pytest.raises(InputError, match="not a judgement"):
        import_jsonl(old, ledger)
    assert ledger.history() == ()


def test_an_entry_without_a_time_is_imported_once(tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text('{"seed":"s","id":"d","relevance":2,"score":-1}\n', encoding="utf-8")
    with Ledger(tmp_path / "new.sqlite") as ledger:
        assert import_jsonl(old, ledger) == (1, 0)
        assert import_jsonl(old, ledger) == (0, 1)
