"""A power cut at any moment of any change leaves the old or the new state, and the change can be repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.power.changes import FILES, INDEXES, MODELS
from tests.power.checking import check
from tests.power.disk import History
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
    "build:files", "build:folders", "build:make_folder", "add:files", "add:folders", "add:write_durably",
    "add:replace_manifest", "add:_write_folder", "delete:files", "compact:folders", "merge:files", "merge:folders",
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
    assert check(mutant, *recorded(mutant), 150).wrong
