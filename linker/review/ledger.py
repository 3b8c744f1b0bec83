"""A review's one file: judgements, to which entries are only ever added, its seeds and its settings, in SQLite."""

from __future__ import annotations

import dataclasses
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import orjson

from linker.errors import InputError
from linker.review.database import Database
from linker.review.interface import VERDICTS, Judgement, Seed

COLUMNS = tuple(f.name for f in dataclasses.fields(Judgement))
INSERT = f"INSERT INTO entries (undoes, {', '.join(COLUMNS)}) VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"
SELECT = f"SELECT number, undoes, {', '.join(f'e.{c}' for c in COLUMNS)} FROM entries e"
STANDING = "undoes IS NULL AND NOT EXISTS (SELECT 1 FROM entries u WHERE u.undoes = e.number)"

Pair = tuple[str, str]  # seed and document


@dataclass(frozen=True, slots=True)
class Entry:
    """What was written once and stays: a judgement or, where `undoes` is an entry's number, its undoing.

    An undo holds the judgement that it takes back, with the time of the undo.
    """

    number: int
    judgement: Judgement
    undoes: int | None = None


class Ledger:
    """Judgements of all reviewers in the order they were made, with the seeds and settings of the review.

    Nothing is rewritten: an undo is an entry, and a later judgement of the same reviewer, seed and document replaces
    the earlier one only in what `judgements` returns. Any number of threads and processes may read and write at once;
    a reader never waits. Every method raises InputError where the file cannot be read or written.
    """

    def __init__(self, path: str | Path, *, durable: bool = True) -> None:
        """Open or create the file; `durable` flushes each entry to the disk, which takes some milliseconds.

        Raises InputError where it is a file of another kind, or of another version.
        """
        self.path = Path(path)
        self._database = Database(self.path, durable=durable)

    def add(self, judgement: Judgement) -> Judgement:
        """Append a judgement so that no later crash loses it; return it with its time, now unless it has one."""
        return self.add_all([judgement])[0]

    def add_all(self, judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
        """Append judgements, all or none, and return them as `add` does."""
        stamped = tuple(_stamped(j) for j in judgements)
        with self._database.writing() as connection:
            connection.executemany(INSERT, [(None, *_values(j)) for j in stamped])
        return stamped

    def undo(self, reviewer: str = "") -> Judgement | None:
        """Take back the reviewer's last judgement that stands, and return it, or None; again: the one before it."""
        with self._database.writing() as connection:
            last = _last(connection, reviewer)
            if last is None:
                return None
            values = _values(dataclasses.replace(last.judgement, time=_now()))
            connection.execute(INSERT, (last.number, *values))
        return last.judgement

    def last(self, reviewer: str = "") -> Judgement | None:
        """Return the judgement that `undo` would take back, or None."""
        with self._database.reading() as connection:
            last = _last(connection, reviewer)
        return last.judgement if last else None

    def judgements(self, reviewer: str | None = None) -> tuple[Judgement, ...]:
        """Return the judgements that stand, of all reviewers or of one, in the order they were made.

        Those undone are left out, and of several by one reviewer of one seed and document only the last one stands.
        """
        condition, values = ("", ()) if reviewer is None else (" AND reviewer = ?", (reviewer,))
        with self._database.reading() as connection:
            rows = connection.execute(
                f"{SELECT} WHERE {STANDING}{condition} ORDER BY number", values
            ).fetchall()
        standing: dict[tuple[str, str, str], Judgement] = {}
        for judgement in (_entry(row).judgement for row in rows):
            key = judgement.reviewer, judgement.seed, judgement.id
            standing.pop(key, None)
            standing[key] = judgement
        return tuple(standing.values())

    def history(self, after: int = 0) -> tuple[Entry, ...]:
        """Return all entries in order, or those whose number is greater than `after`."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{SELECT} WHERE number > ? ORDER BY number", (after,)).fetchall()
        return tuple(_entry(row) for row in rows)

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Those who have judged, in alphabetical order."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT DISTINCT reviewer FROM entries ORDER BY reviewer").fetchall()
        return tuple(name for (name,) in rows)

    def unread(self, reviewer: str) -> tuple[Pair, ...]:
        """Return what others have judged and this reviewer has not, for a second judgement blind to the first.

        In the order of the first judgements; those that the reviewer skipped come last. A skip is no judgement.
        """
        standing = self.judgements()
        mine = {(j.seed, j.id): j.verdict for j in standing if j.reviewer == reviewer}
        others = dict.fromkeys(
            (j.seed, j.id) for j in standing if j.reviewer != reviewer and j.verdict != "skip"
        )
        unread = [pair for pair in others if mine.get(pair, "skip") == "skip"]
        return tuple(sorted(unread, key=lambda pair: pair in mine))

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The seeds in the order they were first put."""
        query = "SELECT id, text, title, metadata, document FROM seeds ORDER BY position"
        with self._database.reading() as connection:
            rows = connection.execute(query).fetchall()
        return tuple(
            Seed(i, text, title, orjson.loads(data), document) for i, text, title, data, document in rows
        )

    def put_seeds(self, seeds: Iterable[Seed]) -> None:
        """Add seeds, all or none; one whose id is there already replaces it in its place."""
        rows = [(s.id, s.text, s.title, _json(dict(s.metadata)), s.document) for s in seeds]
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT INTO seeds (id, text, title, metadata, document) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET text = excluded.text, title = excluded.title, "
                "metadata = excluded.metadata, document = excluded.document",
                rows,
            )

    def remove_seeds(self, ids: Sequence[str]) -> None:
        """Remove seeds; their judgements stay. Ids that are not there are ignored."""
        with self._database.writing() as connection:
            connection.executemany("DELETE FROM seeds WHERE id = ?", [(id_,) for id_ in ids])

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings as they are now, JSON values by key."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT key, value FROM settings ORDER BY key").fetchall()
        return {key: orjson.loads(value) for key, value in rows}

    def set(self, key: str, value: Any) -> None:
        """Store a setting, a value that JSON can hold. Raises InputError for any other."""
        text = _json(value)
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, text))

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _stamped(judgement: Judgement) -> Judgement:
    if judgement.verdict not in VERDICTS:
        raise InputError(f"{judgement.verdict!r} is no verdict: use one of {', '.join(VERDICTS)}")
    return judgement if judgement.time else dataclasses.replace(judgement, time=_now())


def _values(judgement: Judgement) -> list[str | float | None]:
    """Return what is stored of a judgement, in the order of COLUMNS."""
    values = {name: getattr(judgement, name) for name in COLUMNS}
    for name in ("score", "probability"):
        number = values[name]
        values[name] = None if number is None or math.isnan(number) else float(number)
    return list((values | {"tags": _json(list(judgement.tags))}).values())


def _entry(row: tuple[Any, ...]) -> Entry:
    number, undoes, *values = row
    fields = dict(zip(COLUMNS, values, strict=True))
    return Entry(number, Judgement(**fields | {"tags": tuple(orjson.loads(fields["tags"]))}), undoes)


def _last(connection: sqlite3.Connection, reviewer: str) -> Entry | None:
    query = f"{SELECT} WHERE {STANDING} AND reviewer = ? ORDER BY number DESC LIMIT 1"
    row = connection.execute(query, (reviewer,)).fetchone()
    return _entry(row) if row else None


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    except TypeError as e:
        raise InputError(f"a ledger cannot store {str(value)[:100]}: {e}") from None
