"""A ledger file written by a stranger, damaged or removed: an error, never a wrong judgement."""

import contextlib
import os
import random
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest

from linker.base.errors import InputError
from linker.review import database, schema
from linker.review.interface import Judgement, Seed
from linker.review.ledger import Ledger

VERSION_1 = Path(__file__).parents[1] / "golden" / "ledger-v1.sql"
FLIPS = 150
NOW = "2026-01-02T03:04:05.000+00:00"


def judgement(id_: str, reviewer: str = "ana") -> Judgement:
    return Judgement("s", id_, "relevant", reviewer, score=0.5, time=NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "review.sqlite", durable=False) as ledger:
        ledger.add_all([judgement("a"), judgement("b", "ben"), judgement("c")])
        ledger.put_seeds([Seed("s", "a text"), Seed("t", "another")])
        ledger.set("target", 0.9)
        ledger.set("unit", "pairs")
    return ledger.path


def change(path: Path, *statements: str) -> None:
    """Make a change that any program that opens the file can make."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        for statement in statements:
            other.execute(statement)


FOREIGN = {
    "trigger": "CREATE TRIGGER lost BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
    "view": "CREATE VIEW v AS SELECT 1",
    "index": "CREATE INDEX i ON entries (verdict)",
    "table": "CREATE TABLE more (x)",
}


@pytest.mark.parametrize(("kind", "statement"), FOREIGN.items(), ids=FOREIGN)
def test_a_schema_that_is_not_ours_is_refused(path: Path, kind: str, statement: str) -> None:
    with Ledger(path) as ledger:
        for phase in ("", "Queue", "other"):
            with pytest.raises(InputError, match="not a phase of a review"):
                ledger.add(Judgement("s", "d", "not", phase=phase))  # type: ignore[arg-type]
    change(path, statement)
    with pytest.raises(InputError, match=f"the {kind} '[a-z]+' that linker did not make"):
        Ledger(path)
    change(path, f"DROP {kind} {statement.split()[2]}", "DROP TRIGGER entries_remain")
    with pytest.raises(InputError, match="the trigger 'entries_remain' that linker made is missing"):
        Ledger(path)


def test_a_view_in_place_of_a_table_is_refused_at_once(path: Path) -> None:
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS key, x AS value FROM n"
    )
    change(path, "DROP TABLE settings", f"CREATE VIEW settings AS {endless}")
    with pytest.raises(InputError, match="the view 'settings' that linker did not make"):
        Ledger(path)


def test_a_trigger_that_comes_later_is_refused_before_anything_is_written(path: Path) -> None:
    with Ledger(path) as ledger:
        change(path, FOREIGN["trigger"])
        with pytest.raises(InputError, match="'lost' that linker did not make"):
            ledger.add(judgement("d"))
        change(path, "DROP TRIGGER lost")
        assert ledger.add(judgement("d")) in ledger.judgements()


def test_what_was_written_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of defence, if a change of the schema should ever go unnoticed."""
    monkeypatch.setattr(schema, "check", lambda *_: None)
    ignored = "BEGIN SELECT RAISE(IGNORE); END"
    change(path, *(f"CREATE TRIGGER t{n} BEFORE INSERT ON {n} {ignored}" for n in ("entries", "seeds")))
    with Ledger(path) as ledger:
        with pytest.raises(InputError, match="did not return what was written"):
            ledger.add(judgement("d"))
        with pytest.raises(InputError, match="its seeds are not what was written"):
            ledger.put_seeds([Seed("u", "new")])
        assert (len(ledger.judgements()), len(ledger.seeds)) == (3, 2)


def test_what_failed_halfway_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "check", lambda *_: None)
    fails = "BEGIN SELECT RAISE(FAIL, 'no'); END"  # keeps the earlier writes of the statement
    change(path, f"CREATE TRIGGER t BEFORE INSERT ON entries WHEN NEW.id = 'e' {fails}")
    with Ledger(path) as ledger:
        with pytest.raises(InputError, match=": no"):
            ledger.add_all([judgement("d"), judgement("e")])
        assert len(ledger.judgements()) == 3


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE entries SET verdict = 'not' WHERE number = 2", "entry 2 is not what was written"),
        ("UPDATE entries SET score = 0.25 WHERE number = 1", "entry 1 is not what was written"),
        ("UPDATE entries SET number = 9 WHERE number = 3", "entry 3 is not what was written"),
        (
            "DELETE FROM entries WHERE number = 2",
            "entry 2 is not what was written, or one before it is missing",
        ),
        ("DELETE FROM entries WHERE number = 3", "the entries after entry 2 are missing"),
        ("UPDATE seeds SET text = 'x' WHERE id = 't'", "its seeds are not what was written"),
        ("DELETE FROM seeds WHERE id = 't'", "its seeds are not what was written"),
        ("UPDATE settings SET value = '0.8' WHERE key = 'target'", "its settings are not what was written"),
        ("DELETE FROM seals", "its s.* are not what was written"),
    ],
)
def test_a_changed_or_missing_row_is_named(path: Path, statement: str, what: str) -> None:
    triggers = [line for line in schema.SCHEMA.splitlines() if line.startswith("CREATE TRIGGER")]
    change(path, "DROP TRIGGER entries_stay", "DROP TRIGGER entries_remain", statement, *triggers)
    with Ledger(path) as ledger, pytest.raises(InputError, match=f"{what}.*restore a copy"):
        _ = ledger.judgements(), ledger.seeds, ledger.settings


def everything(path: Path) -> tuple[object, ...]:
    with Ledger(path, durable=False) as ledger:
        return (
            ledger.judgements(), ledger.judgements("ana"), ledger.history(), ledger.seeds, ledger.settings,
            ledger.reviewers,
        )  # fmt: skip


def test_no_damage_changes_what_was_judged_in_silence(path: Path, tmp_path: Path) -> None:
    with Ledger(path, durable=False) as ledger:
        ledger.add_all(judgement(f"d{n}", "ana" if n % 2 else "ben") for n in range(60))
        ledger.undo("ben")
        ledger.put_seeds(Seed(f"s{n}", f"text {n} " * 20) for n in range(12))
    good, data = everything(path), path.read_bytes()
    rng, refused, torn = random.Random(7), 0, tmp_path / "torn.sqlite"
    for _ in range(FLIPS):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            damaged[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        torn.write_bytes(damaged)
        try:
            assert everything(torn) == good
            with Ledger(torn, durable=False) as ledger:
                ledger.add(judgement("new"))
            assert everything(torn)[2] == (*good[2], *Ledger(torn).history(len(good[2])))  # type: ignore[misc,arg-type]
        except InputError:
            refused += 1
        for suffix in ("", "-wal", "-shm"):
            Path(f"{torn}{suffix}").unlink(missing_ok=True)
    assert 0 < refused < FLIPS


def test_what_takes_too_long_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(path)
    monkeypatch.setattr(database, "LONGEST", 0.0)
    monkeypatch.setattr(database, "STEPS", 1)
    with pytest.raises(InputError, match="took longer than"):
        ledger.judgements()
    monkeypatch.undo()
    assert len(ledger.judgements()) == 3


def test_a_journal_cannot_have_another_file_deleted(path: Path, tmp_path: Path) -> None:
    """SQLite deletes the file that a journal names as the super-journal of a multi-database transaction."""
    precious = tmp_path / "thesis.txt"
    precious.write_text("mine")
    magic, name = database.JOURNAL_MAGIC, str(precious).encode()
    head = (magic + struct.pack(">IIIII", 0, 0, 1, 512, 4096)).ljust(512, b"\0")
    end = name + struct.pack(">II", len(name), sum(name)) + magic
    journal = path.with_name("review.sqlite-journal")
    journal.write_bytes(head + struct.pack(">I", 0x40000000 // 4096 + 1) + end)
    with pytest.raises(InputError, match=f"{journal} was not written by linker: delete it"):
        Ledger(path)
    assert precious.read_text() == "mine"
    journal.unlink()
    assert len(Ledger(path).judgements()) == 3


def test_nothing_is_written_into_a_file_that_was_deleted_or_replaced(path: Path, tmp_path: Path) -> None:
    other = Path(shutil.copyfile(path, tmp_path / "copy"))
    with Ledger(path) as ledger:
        path.unlink()
        for _ in range(2):
            with pytest.raises(InputError, match="was deleted or replaced while it was open"):
                ledger.add(judgement("d"))
            assert not path.exists()
        other.rename(path)
        with pytest.raises(InputError, match="open the review again"):
            ledger.judgements()
    assert len(Ledger(path).judgements()) == 3


def test_another_ledger_in_the_same_file_is_noticed(path: Path, tmp_path: Path) -> None:
    with Ledger(tmp_path / "other", durable=False) as other:
        other.add_all(judgement(id_) for id_ in "xyz")
    with Ledger(path) as ledger:
        assert len(ledger.history()) == 3
        ledger.close()
        path.write_bytes(other.path.read_bytes())
        with pytest.raises(InputError, match="entry 3 is not the one that was read before"):
            ledger.add(judgement("d"))
    assert len(Ledger(path).history()) == 3


def test_only_the_owner_can_read_it_and_a_fork_opens_a_connection_of_its_own(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.add(judgement("d"))
        modes = {p.name: p.stat().st_mode & 0o777 for p in path.parent.glob("review.sqlite*")}
    assert modes == {"review.sqlite": 0o600, "review.sqlite-wal": 0o600, "review.sqlite-shm": 0o600}
    with Ledger(path) as ledger:
        with ledger._database.reading() as connection:
            inherited = id(connection)
        child = os.fork()
        if not child:
            with ledger._database.reading() as connection:
                os._exit(int(id(connection) == inherited))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with ledger._database.reading() as connection:
            assert id(connection) == inherited


@pytest.mark.parametrize(("mode", "after"), [(0o644, 0o600), (0o664, 0o664)])
def test_a_ledger_of_version_1_is_upgraded(tmp_path: Path, mode: int, after: int) -> None:
    path = tmp_path / "l"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.executescript(VERSION_1.read_text(encoding="utf-8"))
    path.chmod(mode)
    first = Judgement("s", "a", "relevant", "ana", "a note", ("t",), -0.25, 0.5, "abc", "audit", NOW)
    with Ledger(path) as ledger:
        assert ledger.judgements() == (first,)
        assert [(e.number, e.undoes) for e in ledger.history()] == [(1, None), (2, None), (3, 2)]
        assert ledger.seeds == (Seed("s", "a text", "a title", {"n": [1]}, "d7"),)
        assert ledger.settings == {"unit": "pairs", "target": 0.8}
        ledger.add(judgement("new"))
    assert path.stat().st_mode & 0o777 == after
    with Ledger(path) as again:
        assert [e.number for e in again.history()] == [1, 2, 3, 4]


def test_a_foreign_schema_of_version_1_is_not_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.executescript(VERSION_1.read_text(encoding="utf-8") + FOREIGN["trigger"] + ";")
    before = path.read_bytes()
    with pytest.raises(InputError, match="'lost' that linker did not make"):
        Ledger(path)
    assert path.read_bytes() == before
