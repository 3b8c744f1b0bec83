"""The state of each row, its file of candidates, and the table of decisions."""

from pathlib import Path

import pytest

from linker.base.errors import InputError
from linker.review.interface import Judgement, Phase, Seed, Verdict
from linker.review.rows.candidates import Match, Matches, load, save, stamp
from linker.review.rows.states import (
    COLUMNS,
    Row,
    before,
    by_probability,
    counts,
    known_links,
    next_open,
    states,
    table,
)

SEEDS = [Seed(f"s{i}", f"text {i}") for i in range(1, 5)]
FOUND = {
    "s1": (Match("a", 0.9), Match("b", 0.3)),
    "s2": (Match("c", 0.97),),
    "s3": (Match("a", 0.6), Match("d", 0.2)),
}


def said(seed: str, id_: str, verdict: Verdict, phase: Phase = "queue", **more: object) -> Judgement:
    return Judgement(seed, id_, verdict, "ana", phase=phase, **more)  # type: ignore[arg-type]


def rows(*judgements: Judgement) -> list[Row]:
    return states(SEEDS, FOUND, judgements)


def test_rows_are_counted_and_never_the_pairs() -> None:
    found = rows(
        said("s1", "a", "relevant"), said("s2", "c", "not"), said("s3", "", "not", "row"), said("gone", "a", "not")
    )  # fmt: skip
    assert [row.state for row in found] == ["matched", "open", "none", "open"]
    assert counts(found) == {"matched": 1, "none": 1, "open": 2}
    assert [row.number for row in found] == [1, 2, 3, 4]
    assert found[1].best is None
    assert found[1].left == ()
    assert known_links(found) == [("s1", "a")]


def test_the_last_word_counts_and_copies_and_acceptances_are_told_apart() -> None:
    changed = rows(said("s1", "a", "relevant"), said("s1", "", "not", "row"))[0]
    assert (changed.state, changed.links) == ("none", {})
    assert rows(said("s1", "", "not", "row"), said("s1", "b", "relevant"))[0].state == "matched"
    taken_back = rows(said("s1", "a", "relevant"), said("s1", "a", "not"))[0]
    assert (taken_back.state, taken_back.best) == ("open", Match("b", 0.3))
    assert rows(said("s1", "", "skip", "row"))[0].later
    assert not rows(said("s1", "", "skip", "row"), said("s1", "a", "not"))[0].later
    row = rows(said("s1", "a", "relevant"), said("s1", "b", "relevant", "search", tags=("copy of a",)))[0]
    assert list(row.links) == ["a"]
    assert row.left == ()
    accepted = rows(said("s1", "a", "relevant", "accepted"))[0]
    assert (accepted.state, accepted.accepted, known_links([accepted])) == ("matched", True, [])
    read = rows(said("s1", "a", "relevant", "accepted"), said("s1", "a", "relevant"))[0]
    assert not read.accepted


def test_the_surest_come_first_and_the_next_open_row_follows() -> None:
    ordered = by_probability(rows(said("s2", "c", "relevant")))
    assert [row.seed.id for row in ordered] == ["s2", "s1", "s3", "s4"]

    def following(*arguments: object) -> str:
        found = next_open(ordered, *arguments)  # type: ignore[arg-type]
        return found.seed.id if found else ""

    assert following() == "s1"
    assert following("s1") == "s3"
    assert following("s4") == "s1"
    assert following("", {"s1"}) == "s3"
    assert following("", {"s1"}, {"s4"}) == "s4"
    assert following("", {"s1", "s3", "s4"}) == ""
    later = by_probability(rows(said("s1", "", "skip", "row")))
    assert [row.seed.id for row in later if next_open(later) is row] == ["s2"]
    assert next_open([row for row in later if row.later]) is not None


def test_the_rows_after_a_rejected_candidate_are_not_passed_over() -> None:
    judged = rows(said("s2", "c", "not"), said("s1", "a", "not"), said("s1", "", "not", "row"))
    ordered = by_probability(judged)
    assert [row.seed.id for row in ordered] == ["s3", "s1", "s2", "s4"]
    assert before(ordered, judged[1]) == "" and before(ordered, judged[0]) == ""
    assert before(ordered, judged[2]) == "" and before(ordered, judged[3]) == "s2"
    found = next_open(ordered, before(ordered, judged[0]))
    assert found is judged[2]


def test_the_table_has_every_row_with_its_match_its_state_and_how_it_was_decided() -> None:
    found = list(
        table(rows(
            said("s1", "a", "relevant", note="same words"), said("s1", "b", "relevant"),
            said("s2", "c", "relevant", "accepted", probability=0.97), said("s3", "", "not", "row", note="a joke"),
        ))
    )  # fmt: skip
    cells = [
        [d.row.seed.id, *(d.cells()[name] for name in ("state", "match", "probability", "how", "note"))]
        for d in found
    ]
    assert cells == [
        ["s1", "matched", "a", 0.9, "read", "same words"],
        ["s1", "matched", "b", 0.3, "read", ""],
        ["s2", "matched", "c", 0.97, "accepted", ""],
        ["s3", "none", "", None, "read", "a joke"],
        ["s4", "open", "", None, "", ""],
    ]
    assert tuple(found[0].cells()) == COLUMNS


def test_candidates_come_back_as_they_were_stored(tmp_path: Path) -> None:
    path = tmp_path / "matches.json"
    matches = Matches("x", FOUND, 3, (0.9, 0.2), (True, False))
    save(path, matches)
    assert load(path) == matches
    for text in (
        b"[]",
        b"{",
        b'{"rows": {"s": [["a"], []]}, "stamp": "", "known": 0, "held": [], "right": []}',
    ):
        path.write_bytes(text)
        with pytest.raises(InputError, match=r"matches\.json is not a file of candidates"):
            load(path)


def test_the_stamp_follows_rows_filter_and_documents() -> None:
    now = stamp(SEEDS, (), 3)
    assert stamp(list(SEEDS), (), 3) == now
    others = [stamp(SEEDS[:3], (), 3), stamp(SEEDS, ("lang=en",), 3), stamp(SEEDS, (), 4)]
    others.append(stamp([*SEEDS[:3], Seed("s4", "another text")], (), 3))
    assert now not in others
    assert len(set(others)) == 4
