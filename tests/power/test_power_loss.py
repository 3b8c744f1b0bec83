"""A power cut at any moment of any change leaves the old or the new state, and the change can be repeated."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.power.changes import FILES, INDEXES, MODELS
from tests.power.checking import check
from tests.power.disk import ROOT, Disk, Entries, History, Op, Sync, Tree, Truncate, Write
from tests.power.recording import record, require_shim

# Minimum number of distinct states opened per change.
STATES = {
    "build": 600, "add": 450, "delete": 50, "compact": 300, "merge": 100, "drop": 200, "back up": 150, "restore": 150,
    "add, keeping generations": 150, "check out": 15, "back up to an archive": 8,
}  # fmt: skip
AGAIN = 12  # the change is repeated on at most this many states
MODEL_STATES, FILE_STATES = 60, 200
# Omitting these fsyncs must be detected.
MUTANTS = [
    "build:files", "build:folders", "build:make_folder", "add:files", "add:folders", "add:segments", "add:text",
    "add:manifest.json.tmp", "add:replace_manifest", "delete:files", "compact:folders", "merge:files", "merge:folders",
    "merge:merging",
]  # fmt: skip
FILE_MUTANTS = [
    "write files atomically:files", "write files atomically:folders", "write a run:files", "write a run:folders",
]  # fmt: skip

Recorded = Callable[[str], tuple[History, Path]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Give the history of a job; related jobs are recorded in one process."""
    require_shim()
    found: dict[str, tuple[History, Path]] = {}

    def history(job: str) -> tuple[History, Path]:
        groups = (list(INDEXES) + list(FILES) + MUTANTS + FILE_MUTANTS, list(MODELS))
        if job not in found:
            jobs = next(group for group in groups if job in group)
            work = tmp_path_factory.mktemp("power")
            found.update({name: (one, work) for name, one in record(jobs, work).items()})
        return found[job]

    return history


def test_the_states_are_thousands() -> None:
    assert STATES.keys() == INDEXES.keys()
    assert sum(STATES.values()) >= 2000


@pytest.mark.slow
@pytest.mark.parametrize("change", STATES)
def test_an_index_survives(change: str, recorded: Recorded) -> None:
    found = check(change, *recorded(change), STATES[change], AGAIN)
    assert found.wrong == []
    assert found.states >= STATES[change]
    assert found.made_again == min(AGAIN, found.states)


@pytest.mark.slow
@pytest.mark.parametrize("change", MODELS)
def test_a_model_survives(change: str, recorded: Recorded) -> None:
    found = check(change, *recorded(change), MODEL_STATES, 5)
    assert found.wrong == []
    assert found.states > 5


@pytest.mark.parametrize("change", FILES)
def test_a_file_survives(change: str, recorded: Recorded) -> None:
    found = check(change, *recorded(change), FILE_STATES, 10)
    assert found.wrong == []
    assert found.states > 5


@pytest.mark.parametrize("mutant", MUTANTS + FILE_MUTANTS)
def test_a_missing_fsync_is_found(mutant: str, recorded: Recorded) -> None:
    assert check(mutant, *recorded(mutant), 150, until_wrong=True).wrong


OLD, NEW, FOLDER = 1, 2, 3
REPLACE: list[Op] = [
    Entries(((ROOT, "new", NEW),)),
    Write(NEW, 0, b"new"),
    Entries(((ROOT, "new", None), (ROOT, "file", NEW))),
]


def states(ops: Sequence[Op], cut: int | None = None, subsets: int = 20) -> list[Tree]:
    """Return the distinct trees after a cut, or after any cut."""
    history = History(Disk({OLD: b"old"}, {ROOT: {"file": OLD}, FOLDER: {}}), ops)
    variants = [v for part in history.variants(0, subsets) for v in part if cut in (None, v.cut)]
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
        Entries(((ROOT, "folder", FOLDER),)), Entries(((FOLDER, "new", NEW),)), Write(NEW, 0, b"new"),
        Sync(NEW), Sync(FOLDER),
    ]  # fmt: skip
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


def test_flushes_at_the_same_time_may_end_in_any_order() -> None:
    """A history has one of the orders; the states of all orders are among those before the first flush."""
    start: list[Op] = [
        Entries(((ROOT, "folder", FOLDER),)), Entries(((FOLDER, "new", NEW),)), Write(NEW, 0, b"new"),
        Write(OLD, 0, b"odd"),
    ]  # fmt: skip
    before = {str(sorted(tree.items())) for tree in states(start, len(start), 2000)}
    for order in itertools.permutations([Sync(NEW), Sync(OLD), Sync(FOLDER), Sync(ROOT)]):
        ops = [*start, *order]
        for cut in range(len(start), len(ops) + 1):
            assert {str(sorted(tree.items())) for tree in states(ops, cut)} <= before
        assert len(states(ops, len(ops))) == 1
