"""The SQLite file of a ledger: made in one transaction, opened only where it is ours, every error with its remedy."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
import weakref
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from linker.errors import InputError

MAGIC = b"SQLite format 3\0"
APPLICATION = 0x6C6E6B72  # "lnkr" in the file's header: a ledger of ours
VERSION = 1  # of the schema
NEW_SIZES = {4096, 8192}  # bytes: of a file whose first pages SQLite has just made
WAIT = 30.0  # seconds for another process to finish its write
PAUSE = 0.02  # seconds between attempts at what SQLite itself does not wait for

# Entries are never changed or removed: the triggers hold any program to it that opens the file.
SCHEMA = """
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    undoes INTEGER UNIQUE REFERENCES entries (number),
    seed TEXT NOT NULL, id TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('relevant', 'not', 'maybe', 'skip')),
    reviewer TEXT NOT NULL, note TEXT NOT NULL, tags TEXT NOT NULL,
    score REAL, probability REAL, model TEXT NOT NULL, phase TEXT NOT NULL, time TEXT NOT NULL
);
CREATE INDEX entries_of_reviewer ON entries (reviewer, number);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TABLE seeds (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, title TEXT NOT NULL,
    metadata TEXT NOT NULL, document TEXT NOT NULL
);
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class Database:
    """Connections to one file, each used by one thread at a time; readers never wait, writers wait for each other."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        """Open or create the file; `durable`: a committed write survives a power loss (fsync), not only a crash.

        Raises InputError where the file is not ours, too new, damaged, or cannot be read and written.
        """
        self._path, self._durable = path, durable
        self._idle: deque[sqlite3.Connection] = deque()
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _close, self._idle)
        _refuse_foreign(path)
        with self._translated():
            self._idle.append(self._connect())

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection to read with. Raises InputError, also for what goes wrong inside."""
        with self._translated():
            connection = self._take()
            try:
                yield connection
            finally:
                self._idle.append(connection)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside a transaction: all of it is committed, or, after an error, nothing."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk may have ended it already
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close all connections that are not in use; the next call opens one again."""
        _close(self._idle)

    def _take(self) -> sqlite3.Connection:
        if (
            self._process != os.getpid()
        ):  # a fork: SQLite's connections may not be used, nor closed, in the child
            self._process, self._inherited = os.getpid(), self._idle
            self._finalizer.detach()
            self._idle = deque()
            self._finalizer = weakref.finalize(self, _close, self._idle)
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        try:
            self._check_ours(connection)
            _patiently(connection, "PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
            connection.execute("BEGIN IMMEDIATE" if _is_new(connection) else "BEGIN")
            if _is_new(connection):  # still: another process may have been faster
                _create(connection)
            connection.execute("COMMIT")
            self._check_ours(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_ours(self, connection: sqlite3.Connection) -> None:
        application = _pragma(connection, "application_id")
        if application == 0 and _is_new(connection):
            return
        if application != APPLICATION:
            raise InputError(f"{self._path} is a SQLite file of another program: name another ledger")
        if (version := _pragma(connection, "user_version")) != VERSION:
            raise InputError(
                f"{self._path} has version {version} of the ledger's format, this linker reads {VERSION}: "
                "use the version of linker that wrote it, or a newer one"
            )

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn SQLite's errors into InputError with file and remedy."""
        try:
            yield
        except (sqlite3.Error, UnicodeEncodeError) as e:
            raise InputError(f"the ledger {self._path}: {e}{_remedy(self._path, e)}") from e


def _refuse_foreign(path: Path) -> None:
    """Raise InputError where the path leads to something that is neither absent nor empty nor a SQLite file."""
    try:
        if not path.exists():
            return
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"the ledger {path} is not a regular file: name another one")
        with path.open("rb") as file:
            head = file.read(max(NEW_SIZES) + 1)
        if len(head) in NEW_SIZES and not head.strip(b"\0"):
            # A power loss while it was created left the size of its first pages, and no byte.
            os.truncate(path, 0)
            head = b""
    except OSError as e:
        raise InputError(f"cannot read the ledger {path}: {e.strerror}") from e
    if head.lstrip().startswith(b'{"'):
        raise InputError(
            f"{path} is not a ledger but JSON lines: name another ledger, and import this file into it "
            "(linker review import)"
        )
    if head and not head.startswith(MAGIC):
        raise InputError(f"{path} is not a ledger: name another file")


def _is_new(connection: sqlite3.Connection) -> bool:
    """Return whether the file holds nothing yet, be it that its creation was interrupted."""
    return not connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0]


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables in the transaction that is open, so that they are all there or none."""
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    statement = ""
    for line in SCHEMA.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Execute a statement for which SQLite does not wait where another process holds the file."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as e:
            if "locked" not in str(e) or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


def _remedy(path: Path, error: Exception) -> str:
    """Return what the user can do about an error of SQLite, to stand after its text."""
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return ": free some space and repeat; what was judged before is kept"
    if "readonly" in text or "unable to open" in text:
        return f": {path.absolute().parent} must exist and be writable, with the file: SQLite keeps two more beside it"
    if "locked" in text:
        return f": another process has been writing for {WAIT:.0f} seconds: wait for it, or end it"
    if "malformed" in text or "not a database" in text:
        return ": it is damaged; restore a copy of it, or save what is left with: sqlite3 FILE .recover"
    return ""


def _close(connections: deque[sqlite3.Connection]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            connections.pop().close()
