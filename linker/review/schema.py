"""The tables of a ledger's file: created, compared verbatim with ours, sealed against damage, and upgraded."""

import contextlib
import functools
import sqlite3
from collections.abc import Iterable
from typing import Any

import xxhash

APPLICATION = 0x6C6E6B72  # "lnkr" in the file's header, the mark of our ledgers
# version of the schema; version 1 (linker 0.2) had no seals, and is upgraded when the file is opened
VERSION = 2

# Entries are never changed or removed: triggers enforce this for every program that opens the file. The seal of an
# entry is a checksum of its values and the previous seal, so that no entry can be changed, added or lost between two
# others; `seals` has one seal for all rows of each of the other tables.
SCHEMA = """
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    undoes INTEGER UNIQUE REFERENCES entries (number),
    seed TEXT NOT NULL, id TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('relevant', 'not', 'maybe', 'skip')),
    reviewer TEXT NOT NULL, note TEXT NOT NULL, tags TEXT NOT NULL,
    score REAL, probability REAL, model TEXT NOT NULL, phase TEXT NOT NULL, time TEXT NOT NULL,
    seal TEXT NOT NULL
);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TABLE seeds (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, title TEXT NOT NULL,
    metadata TEXT NOT NULL, document TEXT NOT NULL
);
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE seals (name TEXT PRIMARY KEY, seal TEXT NOT NULL);
"""
SCHEMA_1 = SCHEMA.replace("time TEXT NOT NULL,\n    seal TEXT NOT NULL\n", "time TEXT NOT NULL\n").replace(
    "CREATE TABLE seals (name TEXT PRIMARY KEY, seal TEXT NOT NULL);",
    "CREATE INDEX entries_of_reviewer ON entries (reviewer, number);",
)
SCHEMAS = {1: SCHEMA_1, VERSION: SCHEMA}
TABLES = {"seeds": ("position", "id", "text", "title", "metadata", "document"), "settings": ("key", "value")}
MOST = 50  # maximum number of objects read from a schema; ours has about ten


class DamageError(Exception):
    """The file is not as linker wrote it; the message names the difference."""


def seal(values: Iterable[Any], before: str = "") -> str:
    """Return the checksum of a row's values and the previous seal, the same on all machines and Python versions."""
    text = before
    for value in values:
        part = value.hex() if isinstance(value, float) else str(value)
        text += "-" if value is None else f"{len(part)}:{part}"
    return xxhash.xxh3_128_hexdigest(text.encode())


def create(connection: sqlite3.Connection) -> None:
    """Create the tables in the open transaction: either all of them or none."""
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in _statements(SCHEMA):
        connection.execute(statement)


def check(connection: sqlite3.Connection, version: int = VERSION) -> None:
    """Raise DamageError if the schema is not exactly ours: a foreign view or trigger could do anything."""
    found = set(
        connection.execute(f"SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT {MOST}").fetchall()
    )
    if found != (expected := _expected(version)):
        kind, name, *_ = min(found - expected or expected - found, key=lambda row: (str(row[1]), str(row[0])))
        what = "did not make" if found - expected else "made is missing"
        raise DamageError(f"its schema has been changed: the {kind} {str(name)[:100]!r} that linker {what}")


def upgrade(connection: sqlite3.Connection) -> None:
    """Upgrade version 1 to the current one in the open transaction. Raises DamageError if it is damaged."""
    check(connection, 1)
    (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if problem != "ok":
        raise DamageError(str(problem))
    rows = {
        name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
        for name in ("entries", *TABLES)
    }
    for name in rows:
        connection.execute(f"DROP TABLE {name}")
    create(connection)
    before = ""
    for row in rows.pop("entries"):
        before = seal(row, before)
        connection.execute(f"INSERT INTO entries VALUES ({', '.join('?' * (len(row) + 1))})", (*row, before))
    for name, table in rows.items():
        places = ", ".join("?" * len(TABLES[name]))
        connection.executemany(f"INSERT INTO {name} VALUES ({places})", table)
        reseal(connection, name, table)


def reseal(connection: sqlite3.Connection, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Store the seal of a table with these rows."""
    connection.execute("INSERT OR REPLACE INTO seals VALUES (?, ?)", (name, seal_of(rows)))


def seal_of(rows: Iterable[tuple[Any, ...]]) -> str:
    """Return the seal of a table's rows."""
    return functools.reduce(lambda before, row: seal(row, before), rows, "")


@functools.cache
def _expected(version: int) -> frozenset[tuple[str, ...]]:
    """Return our schema as SQLite stores it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMAS[version])
        return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _statements(script: str) -> list[str]:
    statements = [""]
    for line in script.splitlines(keepends=True):
        statements[-1] += line
        if sqlite3.complete_statement(statements[-1]):
            statements.append("")
    return statements[:-1]
