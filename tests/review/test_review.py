import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.errors import InputError
from linker.review.finding import Candidate, StopRule, Verdict, find
from linker.review.jsonl_ledger import Judgement, Ledger

RANKED = [Candidate("s1", f"d{i}", 1.0 - i / 10, i + 1) for i in range(6)]


def by(relevant: set[str]) -> Callable[[Candidate], Verdict]:
    return lambda c: int(c.id in relevant)


def never(_: Candidate) -> Verdict:
    raise AssertionError("nothing is left to ask")


def test_stops_at_enough_relevant_and_continues_with_more(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    first = find(RANKED, by({"d0", "d2", "d3", "d5"}), Ledger(path), StopRule(until=2))
    assert (first.read, first.relevant, first.stopped) == (3, 2, "2 relevant found")
    assert first.score == pytest.approx(0.8)
    again = find(RANKED, never, Ledger(path), StopRule(until=2))
    assert (again.read, again.relevant) == (3, 2)
    asked: list[str] = []

    def judge(c: Candidate) -> Verdict:
        asked.append(c.id)
        return int(c.id in {"d3", "d5"})

    more = find(RANKED, judge, Ledger(path), StopRule(until=3))
    assert asked == ["d3"]
    assert (more.read, more.relevant) == (4, 3)


def test_threshold_is_inclusive_and_max_read_counts_earlier_reading(tmp_path: Path) -> None:
    report = find(RANKED, by(set()), Ledger(tmp_path / "a"), StopRule(threshold=0.8))
    assert (report.read, report.relevant) == (3, 0)
    find(RANKED, by(set()), Ledger(tmp_path / "b"), StopRule(max_read=2))
    assert find(RANKED, by(set()), Ledger(tmp_path / "b"), StopRule(max_read=4)).read == 4


def test_undo_asks_again_and_quit_keeps_the_rest(tmp_path: Path) -> None:
    verdicts: list[Verdict] = [1, 1, "undo", 0, 1, "quit"]
    asked: list[str] = []

    def judge(c: Candidate) -> Verdict:
        asked.append(c.id)
        return verdicts.pop(0)

    ledger = Ledger(tmp_path / "l")
    report = find(RANKED, judge, ledger, StopRule())
    assert asked == ["d0", "d1", "d2", "d1", "d2", "d3"]
    assert [(j.id, j.relevance) for j in ledger.judgements] == [("d0", 1), ("d1", 0), ("d2", 1)]
    assert (report.read, report.relevant, report.stopped) == (3, 2, "stopped by the reviewer")
    assert Ledger(tmp_path / "l").judgements == ledger.judgements


def test_undo_with_nothing_given_asks_the_same_again(tmp_path: Path) -> None:
    verdicts: list[Verdict] = ["undo", "quit"]
    report = find(RANKED, lambda _: verdicts.pop(0), Ledger(tmp_path / "l"), StopRule())
    assert report.read == 0


def test_judgements_of_other_seeds_do_not_count(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l")
    ledger.add(Judgement("other", "d0", 1, 0.5))
    assert find(RANKED, by(set()), ledger, StopRule(until=1, max_read=2)).read == 2


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


def test_undo_never_touches_another_seeds_judgement(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l")
    ledger.add(Judgement("other", "d0", 1, 0.5))
    verdicts: list[Verdict] = ["undo", "quit"]
    find(RANKED, lambda _: verdicts.pop(0), ledger, StopRule())
    assert [j.seed for j in ledger.judgements] == ["other"]


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
