"""The model of the disk, on histories short enough to list every state by hand."""

from __future__ import annotations

from collections.abc import Sequence

from tests.power.disk import ROOT, Disk, Entries, History, Op, Sync, Tree, Truncate, Write

OLD, NEW, FOLDER = 1, 2, 3
REPLACE: list[Op] = [
    Entries(((ROOT, "new", NEW),)),
    Write(NEW, 0, b"new"),
    Entries(((ROOT, "new", None), (ROOT, "file", NEW))),
]


def states(ops: Sequence[Op], cut: int | None = None) -> list[Tree]:
    """Return the distinct trees after a cut, or after any cut."""
    history = History(Disk({OLD: b"old"}, {ROOT: {"file": OLD}, FOLDER: {}}), ops)
    variants = [v for part in history.variants(0, 20) for v in part if cut in (None, v.cut)]
    return list({history.digest(tree): tree for tree in map(history.tree, variants)}.values())


def test_a_renamed_file_that_was_not_flushed_may_be_empty_torn_or_zeros() -> None:
    found = [tree["file"] for tree in states(REPLACE)]
    assert set(found) == {b"old", b"new", b"", b"n", b"ne", b"\0\0\0", b"n\0\0", b"\0ew"}


def test_a_flushed_file_is_replaced_whole_or_not_at_all() -> None:
    ops = [*REPLACE[:2], Sync(NEW), *REPLACE[2:]]
    assert {tree["file"] for tree in states(ops)} == {b"old", b"new"}
    assert {tree["file"] for tree in states(ops, 4)} == {b"old", b"new"}
    assert {tree["file"] for tree in states([*ops, Sync(ROOT)], 5)} == {b"new"}


def test_a_folder_keeps_its_entries_only_if_its_own_is_kept() -> None:
    ops: list[Op] = [
        Entries(((ROOT, "folder", FOLDER),)),
        Entries(((FOLDER, "new", NEW),)),
        Write(NEW, 0, b"new"),
        Sync(NEW),
        Sync(FOLDER),
    ]
    assert states(ops, 5) == [{"file": b"old"}, {"file": b"old", "folder": None, "folder/new": b"new"}]
    assert len(states([*ops, Sync(ROOT)], 6)) == 1


def test_writes_come_in_any_order() -> None:
    ops: list[Op] = [Truncate(OLD, 0), Write(OLD, 0, b"ab"), Write(OLD, 2, b"cd")]
    found = {tree["file"] for tree in states(ops)}
    assert {b"old", b"", b"ab", b"abcd", b"\0\0cd", b"abd", b"ab\0\0", b"abc"} <= found
    assert {tree["file"] for tree in states([*ops, Sync(OLD)], 4)} == {b"abcd"}


def test_a_rename_to_another_folder_needs_both_flushed() -> None:
    ops: list[Op] = [
        Entries(((ROOT, "folder", FOLDER),)),
        Sync(ROOT),
        Entries(((ROOT, "file", None), (FOLDER, "moved", OLD))),
    ]
    before, after = {"file": b"old", "folder": None}, {"folder": None, "folder/moved": b"old"}
    for synced in ([], [Sync(FOLDER)], [Sync(ROOT)]):
        assert sorted(map(str, states([*ops, *synced], 3 + len(synced)))) == sorted(map(str, [before, after]))
    assert states([*ops, Sync(ROOT), Sync(FOLDER)], 5) == [after]
