"""A fixed number of cases for each target, the same in every run; `make fuzz SECONDS=600` uses other seeds."""

import json
import os
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from indexes.errors import DamagedError
from tests.fuzz import engine, sanitized
from tests.fuzz.engine import Run, Target
from tests.fuzz.mutations import LONGEST, Material, mutated
from tests.fuzz.process import tallies
from tests.fuzz.targets import PARTS, TARGETS

FACTOR = float(os.environ.get("LINKER_FUZZ_FACTOR", "0.34"))  # factor on each target's number of cases


def assert_no_failure(found: dict[str, dict[str, object]]) -> None:
    failures = {name: tally["inputs"] for name, tally in found.items() if tally["failures"]}
    assert not failures, json.dumps(failures, indent=1)


@pytest.fixture
def crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(engine, "CRASHES", tmp_path / "crashes")
    return tmp_path / "crashes"


def test_ten_thousand_cases_in_all() -> None:
    assert sum(int(target.cases * FACTOR) for target in TARGETS.values()) >= 10_000


@pytest.mark.slow
@pytest.mark.parametrize("parts", [PARTS[:1], PARTS[1:3], PARTS[3:]], ids=["store", "compiled", "others"])
def test_what_others_wrote_is_taken_or_refused(parts: Sequence[ModuleType]) -> None:
    """One process for several parts, since imports take longer than most parts' cases."""
    cases = {target.name: int(target.cases * FACTOR) for part in parts for target in part.TARGETS}
    found = tallies("--factor", str(FACTOR), *(word for name in cases for word in ("--target", name)))
    assert_no_failure(found)
    assert {name: tally["cases"] for name, tally in found.items()} == cases
    idle = [name for name, tally in found.items() if not tally["taken"]]
    assert not idle, f"not one input was taken: {idle} read nothing"


@pytest.mark.slow
@pytest.mark.skipif(bool(sanitized.missing()), reason=f"no sanitizer: {sanitized.missing()}")
def test_the_compiled_parts_under_sanitizers() -> None:
    found = tallies("--sanitized", "--cases", str(int(150 * FACTOR)))
    assert len(found) == sum(target.compiled for target in TARGETS.values())
    assert_no_failure(found)


@pytest.mark.slow
@pytest.mark.skipif(bool(sanitized.missing()), reason=f"no sanitizer: {sanitized.missing()}")
def test_the_sanitizers_see_a_step_outside(tmp_path: Path) -> None:
    sanitized.copy_tree(tmp_path, {"int64_t sums[BLOCK];": "int64_t sums[BLOCK / 2];"}, parts=("postings",))
    done = sanitized.run(tmp_path, "-m", "tests.fuzz", "--target", "postings", "--cases", "3", "--json")
    # whichever of the two sanitizers reports first
    assert re.search(r"postings\.c.*insufficient space|stack-buffer-overflow", done.stdout), done.stdout


def test_cases_are_the_same_in_every_run() -> None:
    material = Material([b"one 1 line\n" * 9, b'{"a": [1, {"b": null}]}'], [b"token"])
    cases = [[mutated(random.Random(f"0/x/{n}"), material) for n in range(300)] for _ in range(2)]
    assert cases[0] == cases[1]
    assert len(set(cases[0])) > 250
    assert all(len(case) <= LONGEST for case in cases[0])


def target(run: Run) -> Target:
    def prepare(_: Path) -> tuple[Sequence[bytes], Run]:
        return [b"sound"], run

    return Target("planted", prepare)


def test_errors_of_ours_are_refusals_and_others_are_failures_with_their_input(crashes: Path) -> None:
    def run(data: bytes) -> None:
        if data != b"sound":
            raise DamagedError("x") if len(data) % 2 else KeyError("x")

    tally = engine.fuzz(target(run), cases=100)
    assert (tally.taken >= 1, tally.refused > 0) == (True, True)
    ((what, count),) = tally.failures.items()
    assert what.startswith("KeyError at test_fuzz.py:")
    assert tally.taken + tally.refused + count == tally.cases == 100
    (path,) = crashes.iterdir()
    assert len(path.read_bytes()) % 2 == 0
    assert str(path) in tally.inputs[what]


def loop() -> None:
    while True:
        pass


@pytest.mark.parametrize(("end", "what"), [(os.abort, "died by SIGABRT"), (loop, "did not end")])
def test_a_death_or_an_endless_loop_is_a_finding_and_the_run_goes_on(
    end: Callable[[], None], what: str, crashes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "SECONDS", 1)

    def run(data: bytes) -> None:
        if data != b"sound" and b"s" not in data:
            end()

    tally = engine.fuzz(target(run), cases=8)
    assert set(tally.failures) == {what}
    assert tally.cases == 8
    assert tally.taken + tally.failures[what] == 8
    (path,) = crashes.iterdir()
    assert b"s" not in path.read_bytes()
