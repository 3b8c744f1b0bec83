"""The ledger against a slow one: a list of moves, replayed from the beginning for every query."""

import dataclasses
import multiprocessing
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.review import database, schema
from linker.review.interface import VERDICTS, Judgement, Seed, Verdict
from linker.review.ledger import Ledger
from linker.review.ownership import is_ledger
from tests.helpers import ROOT

NOW = "2026-01-02T03:04:05.000+00:00"


def judgement(id_: str, verdict: str = "relevant", reviewer: str = "ana", seed: str = "s") -> Judgement:
    return Judgement(seed, id_, cast(Verdict, verdict), reviewer, time=NOW)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "review.sqlite")


def test_everything_said_of_a_document_is_kept(tmp_path: Path) -> None:
    whole = Judgement(
        "s 1", "d\0", "maybe", "ana é", "a\nnote", ("t", "u,v"), -0.25, 0.5, "abc", "audit", NOW
    )
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.add(whole) == whole
    with Ledger(tmp_path / "l") as again:
        assert again.judgements() == (whole,)
    assert [p.name for p in tmp_path.iterdir()] == ["l"]


def test_a_judgement_without_a_time_is_stamped_in_utc(ledger: Ledger) -> None:
    given = ledger.add(Judgement("s", "d", "not"))
    assert given.time.endswith("+00:00")
    assert ledger.judgements() == (given,)


def test_undo_goes_back_as_far_as_one_likes_and_is_an_entry(ledger: Ledger) -> None:
    ledger.add_all([judgement("a"), judgement("b", reviewer="ben"), judgement("c")])
    assert [j.id for j in (ledger.undo("ana"), ledger.undo("ana")) if j] == ["c", "a"]
    assert ledger.undo("ana") is None
    assert [j.id for j in ledger.judgements()] == ["b"]
    assert ledger.reviewers == ("ana", "ben")
    history = ledger.history()
    assert [(e.number, e.undoes, e.judgement.id) for e in history] == [
        (1, None, "a"), (2, None, "b"), (3, None, "c"), (4, 3, "c"), (5, 1, "a")
    ]  # fmt: skip
    assert history[3].judgement.time > NOW
    assert ledger.history(after=4) == history[4:]


def test_seeds_and_settings(ledger: Ledger) -> None:
    ledger.put_seeds([Seed("s1", "text", "title", {"n": [1]}, "d7"), Seed("s2", "t")])
    ledger.put_seeds([Seed("s1", "other", "title")])
    assert ledger.seeds == (Seed("s1", "other", "title"), Seed("s2", "t"))
    assert ledger.seeds[0].full_text == "title\nother"
    ledger.remove_seeds(["s1", "none"])
    assert [s.id for s in ledger.seeds] == ["s2"]
    ledger.set("target", 0.8)
    ledger.set("rule", {"name": "urn"})
    ledger.set("target", 0.9)
    assert ledger.settings == {"rule": {"name": "urn"}, "target": 0.9}
    with pytest.raises(InputError, match="cannot store"):
        ledger.set("x", object())
    with pytest.raises(InputError, match="not a verdict"):
        ledger.add(judgement("d", "yes"))
    single: Any = np.float32(0.5)
    scored = dataclasses.replace(judgement("d"), score=single, probability=float("nan"))
    ledger.add(scored)
    assert ledger.judgements()[0] == dataclasses.replace(judgement("d"), score=0.5)


def test_no_program_can_change_or_remove_entry_and_all_or_none_of_several_are_stored(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="surrogates not allowed"):
        ledger.add_all([judgement("a"), judgement("\ud800")])
    assert ledger.judgements() == ()
    ledger.add(judgement("a"))
    other = sqlite3.connect(ledger.path)
    for statement in ("UPDATE entries SET verdict = 'not'", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="entries are never"):
            other.execute(statement)
    other.close()


def _slow(moves: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return the state after the moves, each (reviewer, id, verdict or "undo")."""
    made: list[tuple[str, str, str]] = []
    for reviewer, id_, verdict in moves:
        if verdict != "undo":
            made.append((reviewer, id_, verdict))
        elif mine := [i for i, move in enumerate(made) if move[0] == reviewer]:
            del made[mine[-1]]
    return [move for i, move in enumerate(made) if not any(later[:2] == move[:2] for later in made[i + 1 :])]


MOVE = st.tuples(
    st.sampled_from(["ana", "ben"]), st.sampled_from("abc"), st.sampled_from([*VERDICTS, "undo"])
)


@settings(deadline=None, max_examples=60)
@given(st.lists(MOVE, max_size=25))
def test_a_reopened_ledger_is_the_one_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "l"
    with Ledger(path, durable=False) as ledger:
        for reviewer, id_, verdict in moves:
            if verdict == "undo":
                ledger.undo(reviewer)
            else:
                ledger.add(judgement(id_, verdict, reviewer))
        standing = ledger.judgements()
    assert [(j.reviewer, j.id, j.verdict) for j in standing] == _slow(moves)
    with Ledger(path) as again:
        assert again.judgements() == standing


@pytest.mark.parametrize(
    "content",
    [b"notes\n", b"SQLite format 4\0", b'{"seed": "s", "id": "a"}\n', b"\0" * 70_000, b"\0" * 40 + b"x"],
)
def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{path} is not a ledger.*name another"):
        Ledger(path)
    assert path.read_bytes() == content
    assert len(list(tmp_path.iterdir())) == 1


def test_a_first_page_that_no_byte_reached_is_a_new_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(b"\0" * 4096)
    with Ledger(path) as ledger:
        ledger.add(judgement("d1"))
    with Ledger(path) as ledger:
        assert len(ledger.judgements()) == 1


def test_the_sqlite_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    for statement in ("CREATE TABLE entries (number)", "PRAGMA application_id = 7"):
        path.unlink(missing_ok=True)
        other = sqlite3.connect(path)
        other.execute(statement)
        other.commit()
        other.close()
        before = path.read_bytes()
        with pytest.raises(InputError, match=r"other\.sqlite is a SQLite file of another program"):
            Ledger(path)
        assert path.read_bytes() == before


def test_a_newer_version_is_refused(ledger: Ledger) -> None:
    ledger.close()
    other = sqlite3.connect(ledger.path)
    other.execute("PRAGMA user_version = 3")
    other.close()
    with pytest.raises(InputError, match="version 3 of the ledger's format, but this linker reads up to 2"):
        Ledger(ledger.path)


def test_damage_is_named_with_its_remedy(ledger: Ledger) -> None:
    ledger.add_all(judgement(f"d{n}") for n in range(2000))
    ledger.close()
    size = ledger.path.stat().st_size
    with ledger.path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (size - 8192))
    with pytest.raises(InputError, match=r"review.sqlite: .*malformed.*\.recover"):
        Ledger(ledger.path).judgements()


@pytest.mark.parametrize("place", ["none/l", ""])
def test_a_place_that_cannot_hold_it_is_named(tmp_path: Path, place: str) -> None:
    with pytest.raises(InputError, match=str(tmp_path)):
        Ledger(tmp_path / place)


def test_a_reader_does_not_wait_for_a_writer_and_a_writer_that_waits_too_long_is_told(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.add(judgement("a"))
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # and stays open: a reader that waited would never return
    assert [j.id for j in ledger.judgements()] == ["a"]
    other.close()
    monkeypatch.setattr(database, "WAIT", 0.05)
    impatient = Ledger(ledger.path)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(InputError, match="another process has been writing"):
        impatient.add(judgement("a"))
    other.close()
    assert impatient.add(judgement("a")) in ledger.judgements()


def test_threads_lose_nothing(ledger: Ledger) -> None:
    def judge(reviewer: str) -> None:
        for n in range(30):
            ledger.add(judgement(f"d{n}", reviewer=reviewer))
            ledger.undo(reviewer)
            ledger.add(judgement(f"d{n}", reviewer=reviewer))
            assert len(ledger.judgements(reviewer)) == n + 1

    threads = [threading.Thread(target=judge, args=(f"r{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.judgements()) == 180
    assert [e.number for e in ledger.history()] == list(range(1, 541))


def _judge(path: Path, name: str) -> None:
    with Ledger(path, durable=False) as ledger:  # several threads create it at once
        for n in range(25):
            ledger.add(judgement(f"d{n}", reviewer=name))


def test_a_reader_that_sees_an_older_state_than_another_thread_read_is_no_damage(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a reader's transaction begins, another thread adds and reads: the cache is then newer than its state."""
    ledger.add(Judgement("s", "a", "not", "ana"))
    checked, check = list[None](), schema.check

    def meanwhile(connection: sqlite3.Connection, *rest: Any) -> None:
        check(connection, *rest)
        if not checked:
            checked.append(None)
            ledger.add(Judgement("s", "b", "not", "bea"))
            assert len(ledger.history()) == 2

    monkeypatch.setattr(schema, "check", meanwhile)
    assert [e.judgement.id for e in ledger.history()] == ["a"]
    assert [e.judgement.id for e in ledger.history()] == ["a", "b"]


def test_another_program_takes_no_log_away_from_a_process_that_has_opened_file_twice(tmp_path: Path) -> None:
    """The page lists its reviews, which opens each ledger once more, while `linker review` is also running."""
    path = tmp_path / "l"
    page = Ledger(path)
    page.add(Judgement("s", "a", "not", "ana"))
    with Ledger(path) as listed:
        assert len(listed.judgements()) == 1
    assert is_ledger(path)
    for id_ in "bd":
        context = multiprocessing.get_context("spawn")
        other = context.Process(target=_add_once, args=(path, id_))
        other.start()
        other.join()
        page.add(Judgement("s", f"{id_}2", "not", "ana"))
    fresh = subprocess.run(
        [sys.executable, "-c", "import sys; from pathlib import Path; from linker.review.ledger import Ledger; "
         "print(*(j.id for j in Ledger(Path(sys.argv[1])).judgements()))", str(path)],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert fresh.stdout.split() == ["a", "b", "b2", "d", "d2"]


def _add_once(path: Path, id_: str) -> None:
    with Ledger(path) as ledger:
        ledger.add(Judgement("s", id_, "not", "bea"))


def test_processes_lose_nothing_though_all_of_them_create_it(tmp_path: Path) -> None:
    path, context = tmp_path / "l", multiprocessing.get_context("forkserver")
    processes = [context.Process(target=_judge, args=(path, f"r{n}")) for n in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [p.exitcode for p in processes] == [0] * 6
    assert len(Ledger(path).judgements()) == 150


def test_an_acknowledged_judgement_is_flushed(ledger: Ledger, tmp_path: Path) -> None:
    """The effect of a power cut cannot be tested here, but that SQLite is told to flush each commit can."""
    with ledger._database.reading() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    hasty = Ledger(tmp_path / "hasty", durable=False)
    with hasty._database.reading() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (0,)
