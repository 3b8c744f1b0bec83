"""The SQLite file of a ledger: it is created in one transaction, opened only if it is ours; errors name remedies."""

import contextlib
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

from indexes.disk.writing import sync
from indexes.errors import Reason
from linker.base.errors import InputError
from linker.base.files import STEPS, limit_queries, real
from linker.review import schema
from linker.review.schema import DamageError

MAGIC = b"SQLite format 3\0"
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
NEW_SIZES = {4096, 8192}  # bytes of a file whose first pages SQLite has just created
WAIT = 30.0  # maximum number of seconds to wait for another process's write
PAUSE = 0.02  # seconds between retries of statements for which SQLite does not wait
LONGEST = 60.0  # maximum duration of a transaction in seconds, including waits
RESTORE = "restore a copy of it, or save what is left with: sqlite3 FILE .recover"
DEFENSIVE = 1010  # SQLITE_DBCONFIG_DEFENSIVE
# Files that this process has open, by `_place`. Closing any descriptor of such a file drops all of SQLite's locks on it
# (POSIX); another process would then remove the log that contains the last judgements.
_HELD: Counter[tuple[int, int]] = Counter()
_OPENING = threading.RLock()  # reentrant: garbage collection may call `_release` in the thread that holds it
PRAGMAS = ("trusted_schema = OFF", "cell_size_check = ON")


class Database:
    """Connections to one file, each used by one thread at a time; readers never wait, writers wait for each other."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        """Open or create the file; `durable`: a committed write survives a power loss (fsync), not only a crash.

        Raises InputError if the file is not ours, too new, damaged, or cannot be read and written.
        """
        self._path, self._durable = path, durable
        self._idle: deque[sqlite3.Connection] = deque()
        self._process = os.getpid()
        with _OPENING:
            if not is_held(path):
                _refuse_foreign(path)
            self._make_file()
            self._place = _place(path)
            if self._place:
                _HELD[self._place] += 1
        self._finalizer = weakref.finalize(self, _release, self._idle, self._place)
        with self._translated():
            self._idle.append(self._connect())
            self._place = _place(path)

    def reading(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """Open a context with a connection that sees one state of the file; SQLite errors in it become InputError."""
        return self._transaction("BEGIN")

    def writing(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """Open a context with a connection in a transaction, which is committed or, after an error, rolled back."""
        return self._transaction("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close all connections that are not in use; the next call opens one again."""
        _close(self._idle)

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._translated():
            self._check_place()
            connection = self._take()
            try:
                limit_queries(connection, LONGEST, STEPS)
                connection.execute(begin)
                self._check_place()  # the file may have been deleted during the wait
                schema.check(connection)  # another program may have changed the tables meanwhile
                yield connection
                connection.execute("COMMIT")
            finally:
                try:
                    connection.set_progress_handler(None, 0)
                    if connection.in_transaction:  # a full disk may have ended the transaction already
                        connection.execute("ROLLBACK")
                finally:
                    self._idle.append(connection)

    def _take(self) -> sqlite3.Connection:
        # After a fork, SQLite's connections may be neither used nor closed in the child.
        if self._process != os.getpid():
            self._process, self._inherited = os.getpid(), self._idle
            self._finalizer.detach()
            self._idle = deque()
            self._finalizer = weakref.finalize(self, _release, self._idle, self._place)
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _make_file(self) -> None:
        """Make an empty file that only its owner can read; SQLite gives the two files next to it the same mode."""
        # If this fails, SQLite reports the reason.
        with contextlib.suppress(OSError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            if self._durable:
                sync(self._path.absolute().parent)

    def _connect(self) -> sqlite3.Connection:
        _refuse_journal(self._path)
        connection = sqlite3.connect(self._path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        try:
            limit_queries(connection, LONGEST, STEPS)
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            if configure := getattr(connection, "setconfig", None):  # from Python 3.12
                configure(DEFENSIVE, True)
            self._check_ours(connection)
            _patiently(connection, "PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
            if self._check_ours(connection) < schema.VERSION:
                self._make_tables(connection)
            connection.set_progress_handler(None, 0)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new file, or upgrade those of an older version, unless another process has done so."""
        connection.execute("BEGIN IMMEDIATE")
        version = self._check_ours(connection)
        if version == 0:
            schema.create(connection)
        elif version < schema.VERSION:
            schema.upgrade(connection)
            if not self._path.stat().st_mode & 0o022:  # others are not meant to write to it
                self._path.chmod(0o600)
        connection.execute("COMMIT")
        self._check_ours(connection)

    def _check_ours(self, connection: sqlite3.Connection) -> int:
        """Return the version of the file, 0 for an empty one. Raises InputError if its tables are not a ledger's."""
        if not connection.in_transaction:  # else another process might make the tables between two queries
            connection.execute("BEGIN")
            try:
                return self._check_ours(connection)
            finally:
                connection.execute("ROLLBACK")
        application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
        has_tables = connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0]
        if application == 0 and not has_tables:  # a new file, or one whose creation was interrupted
            return 0
        if application != schema.APPLICATION:
            raise InputError(f"{self._path} is a SQLite file of another program: name another ledger")
        if version not in schema.SCHEMAS:
            raise InputError(
                f"{self._path} has version {version} of the ledger's format, but this linker reads up to "
                f"{schema.VERSION}: use the version of linker that wrote it, or a newer one"
            )
        schema.check(connection, version)
        return version

    def _check_place(self) -> None:
        """Raise InputError if the file was deleted or replaced: writes would be lost with it."""
        if _place(self._path) != self._place:
            text = "was deleted or replaced while it was open, and nothing was stored: open the review again"
            raise InputError(Reason(f"the ledger {self._path} {text}", "replaced"))

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn SQLite's errors into InputError with file and remedy; sqlite3 cannot decode all of its messages."""
        try:
            yield
        except (sqlite3.Error, UnicodeError, DamageError) as e:
            cause, remedy = _remedy(self._path, e)
            raise InputError(Reason(f"the ledger {self._path}: {e}{remedy}", cause)) from e


def is_held(path: Path) -> bool:
    """Return whether this process has the file open as a ledger; nothing else may then open and close it."""
    return _HELD[_place(path) or (0, 0)] > 0


def _release(connections: deque[sqlite3.Connection], place: tuple[int, int] | None) -> None:
    _close(connections)
    if place:
        with _OPENING:
            _HELD[place] -= 1


def _place(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, which identify it if it is renamed; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _refuse_journal(path: Path) -> None:
    """Raise InputError if a journal next to the file names another file, which SQLite would delete.

    linker never writes such a journal, which belongs to a transaction over several files.
    """
    journal = real(path)
    journal = journal.with_name(f"{journal.name}-journal")
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        try:
            with journal.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - len(JOURNAL_MAGIC)))
                if file.read() != JOURNAL_MAGIC:
                    return
        except PermissionError:
            return  # SQLite cannot read it either
        raise InputError(f"{journal} was not written by linker: delete it, or name another ledger")


def _refuse_foreign(path: Path) -> None:
    """Raise InputError if the path names something other than a SQLite file, an empty file or nothing at all."""
    try:
        if not path.exists():
            return
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"the ledger {path} is not a regular file: name another one")
        with path.open("rb") as file:
            head = file.read(max(NEW_SIZES) + 1)
        if len(head) in NEW_SIZES and not head.strip(b"\0"):
            # A power loss during creation left the size of its first pages, but no content.
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


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Execute a statement, retrying while another process has the file locked: SQLite itself does not wait for it."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as e:
            if "locked" not in str(e) or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


def _remedy(path: Path, error: Exception) -> tuple[str, str]:
    """Return the cause and the remedy of an SQLite error, to append to its text."""
    text = str(error)
    if "full" in text or "disk I/O" in text:
        cause = "disk-full" if "full" in text else "disk-faulty"
        return cause, ": free some space and try again; earlier judgements are kept"
    if "readonly" in text or "unable to open" in text:
        place = path.absolute().parent
        return (
            "not-allowed",
            f": {place} must exist and be writable, and so must the file: SQLite keeps two more files next to it",
        )
    if "locked" in text:
        return "busy", f": another process has been writing for {WAIT:.0f} seconds: wait for it, or end it"
    if "interrupted" in text:
        return "", f": reading it took longer than {LONGEST:.0f} seconds; {RESTORE}"
    if isinstance(error, DamageError | UnicodeDecodeError) or "malformed" in text or "not a database" in text:
        return "damaged", f": it is damaged; {RESTORE}"
    return "", ""


def _close(connections: deque[sqlite3.Connection]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            connections.pop().close()
