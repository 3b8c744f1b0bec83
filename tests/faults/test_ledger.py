"""The ledger under SIGKILL at any moment, a full disk, a read-only folder: nothing acknowledged is lost."""

import contextlib
import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linker.base.errors import InputError
from linker.review.interface import Judgement
from linker.review.ledger import Ledger
from tests.faults.small_disk import mount, mounted
from tests.faults.support import KILLED

WORKER = Path(__file__).with_name("ledger_worker.py")
KILLS = 100


def killed(path: Path, moments: list[tuple[int, float]]) -> Iterator[list[str]]:
    """Kill a child that writes to the ledger at each (acknowledged entries, seconds later); yield these entries."""
    command = [sys.executable, str(WORKER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        for count, seconds in moments:
            process.stdin.write(f"{path}\t{count}\t{seconds}\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            assert answer["status"] == KILLED
            yield answer["acknowledged"]
        process.stdin.close()


def entries(path: Path) -> list[str]:
    with Ledger(path) as ledger:
        return [("undo " if e.undoes else "") + e.judgement.id for e in ledger.history()]


def test_a_hundred_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path, rng = tmp_path / "l", random.Random(3)
    before: list[str] = []
    for acknowledged in killed(path, [(rng.randrange(5), rng.uniform(0, 0.003)) for _ in range(KILLS)]):
        found = entries(path)
        assert found[: len(before) + len(acknowledged)] == before + acknowledged
        # an entry whose report the kill prevented
        assert len(found) - len(before) - len(acknowledged) in (0, 1)
        with Ledger(path) as ledger:
            assert len({seed.text for seed in ledger.seeds}) <= 1  # both seeds were added, or neither
        before = found
    assert len(before) > KILLS
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_kills_while_it_is_created_leave_nothing_or_a_ledger(tmp_path: Path) -> None:
    rng, states = random.Random(4), set()
    for turn in range(40):
        path = tmp_path / f"l{turn}"
        for _ in killed(path, [(turn % 2, rng.uniform(0, 0.008))]):
            states.add(path.stat().st_size if path.exists() else -1)
            entries(path)
    assert len(states) > 1, f"the kills hit too few moments: {states}"


@pytest.fixture
def disk_of_1m(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "1m") as folder:
        yield folder


def test_a_full_disk_is_told_and_what_was_judged_stays(disk_of_1m: Path) -> None:
    ledger, given = Ledger(disk_of_1m / "l"), 0
    with pytest.raises(InputError, match="free some space"):
        while True:
            ledger.add(Judgement("s", f"d{given}", "not", note="x" * 2000))
            given += 1
    assert given > 10
    assert [j.id for j in ledger.judgements()] == [f"d{n}" for n in range(given)]
    mount(disk_of_1m, "8m", "remount")
    ledger.add(Judgement("s", "last", "not"))
    ledger.close()
    with Ledger(disk_of_1m / "l") as again:
        assert len(again.judgements()) == given + 1


def test_a_disk_without_room_for_the_first_byte(disk_of_1m: Path) -> None:
    with pytest.raises(OSError, match="No space"), (disk_of_1m / "filler").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    with pytest.raises(InputError, match="free some space"):
        Ledger(disk_of_1m / "l")


def test_a_folder_that_cannot_be_written_is_told(disk_of_1m: Path) -> None:
    with Ledger(disk_of_1m / "l") as ledger:
        ledger.add(Judgement("s", "d", "not"))
    mount(disk_of_1m, "1m", "remount", "ro")
    for name in ("l", "new"):
        with pytest.raises(InputError, match=r"must exist and be writable"):
            Ledger(disk_of_1m / name)
    mount(disk_of_1m, "1m", "remount", "rw")
