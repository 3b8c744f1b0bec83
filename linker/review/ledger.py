"""A review's single file, in SQLite: its judgements (append-only), its seeds and its settings."""

import bisect
import dataclasses
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, get_args

import orjson

from linker.base.errors import InputError
from linker.review.database import Database
from linker.review.interface import UNREAD, VERDICTS, Judgement, Phase, Seed
from linker.review.schema import TABLES, DamageError, reseal, seal, seal_of

COLUMNS = tuple(f.name for f in dataclasses.fields(Judgement))
PHASES: tuple[Phase, ...] = get_args(Phase)
ENTRY = ("number", "undoes", *COLUMNS, "seal")
SELECT = f"SELECT {', '.join(ENTRY)} FROM entries WHERE number >= ? ORDER BY number"
INSERT = f"INSERT INTO entries ({', '.join(ENTRY)}) VALUES ({', '.join('?' * len(ENTRY))})"

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An immutable entry: a judgement or, if `undoes` is an entry's number, the undo of that entry.

    The entry of an undo contains the undone judgement, with the time of the undo.
    """

    number: int
    judgement: Judgement
    undoes: int | None = None


class Ledger:
    """Judgements of all reviewers in the order they were made, with the seeds and settings of the review.

    Nothing is rewritten: an undo is an entry, and a later judgement by the same reviewer on the same seed and
    document replaces the earlier one only in the result of `judgements`. Any number of threads and processes may read
    and write concurrently; a reader never waits. Every method raises InputError if the file cannot be read or
    written.
    """

    def __init__(self, path: str | Path, *, durable: bool = True) -> None:
        """Open or create the file; `durable` flushes each entry to disk, which takes some milliseconds.

        Raises InputError if it is a file of another kind, or of another version.
        """
        self.path = Path(path)
        self._database = Database(self.path, durable=durable)
        # the entries read so far, and the seal of the last one
        self._known: tuple[tuple[Entry, ...], str] = ((), "")
        self._rows: dict[str, tuple[str, list[Row]]] = {}  # each table's rows as last read, with their seal

    def add(self, judgement: Judgement) -> Judgement:
        """Append a judgement durably; return it with its time, which is the current time unless it has one."""
        return self.add_all([judgement])[0]

    def add_all(self, judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
        """Append judgements, all or none, and return them as `add` does."""
        stamped = tuple(_stamped(j) for j in judgements)
        with self._database.writing() as connection:
            self._append(connection, [(None, j) for j in stamped])
        return stamped

    def undo(self, reviewer: str = "") -> Judgement | None:
        """Undo the reviewer's last standing judgement and return it, or None; each call undoes one more."""
        with self._database.writing() as connection:
            standing = _not_undone(self._entries(connection)[0])
            own = [entry for entry in standing if entry.judgement.reviewer == reviewer]
            if not own:
                return None
            last = own[-1]
            self._append(connection, [(last.number, dataclasses.replace(last.judgement, time=_now()))])
        return last.judgement

    def take_back(self, matches: Callable[[Judgement], bool]) -> int:
        """Undo all standing judgements that `matches` accepts, or none of them; return how many."""
        with self._database.writing() as connection:
            found = [e for e in _not_undone(self._entries(connection)[0]) if matches(e.judgement)]
            now = _now()
            self._append(connection, [(e.number, dataclasses.replace(e.judgement, time=now)) for e in found])
        return len(found)

    def judgements(self, reviewer: str | None = None, *, rows: bool = False) -> tuple[Judgement, ...]:
        """Return the standing judgements of all reviewers or of one, in the order they were made.

        Undone ones are left out, and of several by one reviewer on the same seed and document only the last one
        stands. `rows`: also those that are not about a document that was read (see `Phase`).
        """
        standing: dict[tuple[str, str, str], Judgement] = {}
        for judgement in (e.judgement for e in _not_undone(self.history())):
            if reviewer is None or judgement.reviewer == reviewer:
                key = judgement.reviewer, judgement.seed, judgement.id
                standing.pop(key, None)
                standing[key] = judgement
        return tuple(j for j in standing.values() if rows or j.phase not in UNREAD)

    def history(self, after: int = 0) -> tuple[Entry, ...]:
        """Return all entries in order, or only entries with a number greater than `after`."""
        # taken before the transaction, which might not see entries that other threads read in the meantime
        earlier = self._known
        with self._database.reading() as connection:
            entries, _ = self._entries(connection, earlier)
        return entries[bisect.bisect_right(entries, after, key=lambda e: e.number) :] if after else entries

    @property
    def reviewers(self) -> tuple[str, ...]:
        """The reviewers who have judged, in alphabetical order."""
        return tuple(sorted({entry.judgement.reviewer for entry in self.history()}))

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The seeds in the order they were first added."""
        with self._database.reading() as connection:
            rows = self._table(connection, "seeds")
        return tuple(
            Seed(i, text, title, orjson.loads(data), document) for _, i, text, title, data, document in rows
        )

    def put_seeds(self, seeds: Iterable[Seed]) -> None:
        """Add seeds, all or none; a seed with an existing id replaces that seed in place."""
        values = [(s.id, s.text, s.title, _json(dict(s.metadata)), s.document) for s in seeds]
        with self._database.writing() as connection:
            rows = {row[1]: row for row in self._table(connection, "seeds")}
            free = max((row[0] for row in rows.values()), default=0) + 1
            for value in values:
                place = rows[value[0]][0] if value[0] in rows else free
                rows[value[0]] = (place, *value)
                free += place == free
            self._put(connection, "seeds", rows.values())

    def remove_seeds(self, ids: Sequence[str]) -> None:
        """Remove seeds; their judgements stay. Unknown ids are ignored."""
        with self._database.writing() as connection:
            gone = frozenset(ids)
            self._put(connection, "seeds", [r for r in self._table(connection, "seeds") if r[1] not in gone])

    @property
    def settings(self) -> Mapping[str, Any]:
        """The current settings: JSON values by key."""
        with self._database.reading() as connection:
            rows = self._table(connection, "settings")
        return {key: orjson.loads(value) for key, value in rows}

    def set(self, key: str, value: Any) -> None:
        """Store a setting. Raises InputError if the value is not JSON-serialisable."""
        text = _json(value)
        with self._database.writing() as connection:
            rows = dict(self._table(connection, "settings")) | {key: text}
            self._put(connection, "settings", sorted(rows.items()))

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _entries(
        self, connection: sqlite3.Connection, earlier: tuple[tuple[Entry, ...], str] | None = None
    ) -> tuple[tuple[Entry, ...], str]:
        """Return all entries and the last one's seal; only entries since the last call are read.

        `earlier`: the entries known before a transaction that may see an older state; never used by a writer.
        """
        known, before = earlier or self._known
        number, fresh = known[-1].number if known else 0, list[Entry]()
        rows = connection.execute(SELECT, (number,))
        if known and (next(rows, None) or (None,))[-1] != before:
            raise DamageError(f"entry {number} is not the one that was read before")
        for row in rows:
            *values, sealed = row
            if values[0] <= number or sealed != (before := seal(values, before)):
                raise DamageError(f"entry {number + 1} is not what was written, or one before it is missing")
            number = values[0]
            fresh.append(_entry(values))
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
        if (last[0] if last else 0) != number:
            raise DamageError(f"the entries after entry {number} are missing")
        if fresh:
            known = (*known, *fresh)
            self._known = known, before
        return known, before

    def _append(
        self, connection: sqlite3.Connection, judgements: Sequence[tuple[int | None, Judgement]]
    ) -> None:
        """Write entries, each with the number of the one that it undoes, and read them back: all must be stored."""
        known, before = self._entries(connection)
        number = first = known[-1].number if known else 0
        rows: list[Row] = []
        for number, (undoes, judgement) in enumerate(judgements, start=first + 1):
            row = (number, undoes, *_values(judgement))
            before = seal(row, before)
            rows.append((*row, before))
        connection.executemany(INSERT, rows)
        if connection.execute(SELECT, (first + 1,)).fetchall() != rows:
            raise DamageError("reading it back did not return what was written to it")

    def _table(self, connection: sqlite3.Connection, name: str) -> list[Row]:
        """Return the rows of the seeds or settings in order; they are read only if their seal has changed."""
        stored = connection.execute("SELECT seal FROM seals WHERE name = ?", (name,)).fetchone()
        sealed = stored[0] if stored else ""
        if name not in self._rows or self._rows[name][0] != sealed:
            rows: list[Row] = []
            for row in connection.execute(f"SELECT {', '.join(TABLES[name])} FROM {name} ORDER BY 1"):
                if rows and row[0] <= rows[-1][0]:
                    raise DamageError(f"a row of its {name} appears twice")
                rows.append(row)
            if seal_of(rows) != sealed:
                raise DamageError(f"its {name} are not what was written")
            self._rows[name] = sealed, rows
        return self._rows[name][1]

    def _put(self, connection: sqlite3.Connection, name: str, rows: Iterable[Row]) -> None:
        """Replace the rows of the seeds or settings, and read them back."""
        before, after = set(self._table(connection, name)), list(rows)
        first, places = TABLES[name][0], ", ".join("?" * len(TABLES[name]))
        gone = {row[0] for row in before} - {row[0] for row in after}
        connection.executemany(f"DELETE FROM {name} WHERE {first} = ?", [(key,) for key in gone])
        connection.executemany(
            f"INSERT OR REPLACE INTO {name} VALUES ({places})", [row for row in after if row not in before]
        )
        reseal(connection, name, after)
        self._table(connection, name)  # the existing rows must match their seal


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _stamped(judgement: Judgement) -> Judgement:
    if judgement.verdict not in VERDICTS:
        raise InputError(f"{judgement.verdict!r} is not a verdict: use one of {', '.join(VERDICTS)}")
    if judgement.phase not in PHASES:
        raise InputError(f"{judgement.phase!r} is not a phase of a review: use one of {', '.join(PHASES)}")
    return judgement if judgement.time else dataclasses.replace(judgement, time=_now())


def _values(judgement: Judgement) -> list[str | float | None]:
    values = {name: getattr(judgement, name) for name in COLUMNS}
    for name in ("score", "probability"):
        number = values[name]
        # SQLite does not preserve the sign of -0.0.
        values[name] = None if number is None or math.isnan(number) else float(number) + 0.0
    return list((values | {"tags": _json(list(judgement.tags))}).values())


def _entry(row: Sequence[Any]) -> Entry:
    number, undoes, *values = row
    fields = dict(zip(COLUMNS, values, strict=True))
    return Entry(number, Judgement(**fields | {"tags": tuple(orjson.loads(fields["tags"]))}), undoes)


def _not_undone(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the judgements that no later entry undoes."""
    undone = {entry.undoes for entry in entries}
    return (entry for entry in entries if entry.undoes is None and entry.number not in undone)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    except TypeError as e:
        raise InputError(f"a ledger cannot store {str(value)[:100]}: {e}") from None
