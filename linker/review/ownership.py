"""Recognise linker's files in a review's folder: by a mark, written first, and by names that only linker uses.

Any other file belongs to somebody else: a folder with such a file is never deleted, and links are not followed.
"""

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from indexes import dropping
from indexes.disk import writing
from indexes.store import ownership as store
from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.review.database import is_held
from linker.review.schema import APPLICATION

MARK = b"linker: lock and mark of a review's folder; do not edit\n"
LOCK, ABOUT, INDEX, UPLOADS, LINKS = "lock", "project.json", "index", "uploads", "links"
# folder of a job in progress; if the job does not finish, the next job of its kind removes it
UNFINISHED = ".building-"
FOLDERS = (UPLOADS, LINKS, UNFINISHED + LINKS)  # folders in a review's folder, besides the index
PAIRS, SOURCES, TARGETS = LINK_FILES = "pairs.jsonl", "sources.jsonl", "targets.jsonl"
_LEDGER = re.compile(
    r"(?:(?:[a-z0-9][a-z0-9-]{0,63}\.)?review|links|groups)\.sqlite(?P<beside>-wal|-shm|-journal)?"
)
_WHOLE = r"lock|project\.json|map\.bin|matches\.json|groups\.json|seeds\.quarantine\.jsonl"
_FILE = re.compile(rf"{_WHOLE}|\.(?:{_WHOLE})\.[0-9]+\.tmp")
_PART = re.compile(r"\.[a-z0-9_]{8}\.part")  # name of an interrupted upload
_APPLICATION_AT = 68  # offset of the application id in an SQLite header


def is_marked(folder: Path) -> bool:
    """Return whether linker made the folder for a review: a file named `lock` alone proves nothing."""
    with contextlib.suppress(OSError):
        return _head(folder / LOCK, len(MARK) + 1) == MARK
    return False


def mark(folder: Path) -> None:
    """Mark the folder as ours; on return, the mark is on the disk. Raises InputError if it cannot be written."""
    write_atomically(folder / LOCK, MARK)


def is_ledger(path: Path) -> bool:
    """Return whether a regular file has the mark of a ledger in its header."""
    with contextlib.suppress(OSError):
        if is_held(path):
            return True
        return _head(path, _APPLICATION_AT + 4)[_APPLICATION_AT:] == APPLICATION.to_bytes(4)
    return False


def has_our_form(about: Any) -> bool:
    """Return whether this is a project.json as linker, and hardly any other program, writes it."""
    known = {"name", "created", "roles", "indexed", "columns"}
    if not isinstance(about, dict) or not {"name", "created"} <= about.keys() <= known:
        return False
    try:
        made = datetime.fromisoformat(about["created"])
    except (TypeError, ValueError):
        return False
    kinds = isinstance(about["name"], str), isinstance(about.get("roles", {}), dict)
    return all(kinds) and isinstance(about.get("indexed", []), list) and made.tzinfo is not None


def delete(folder: Path, uploads: Collection[str]) -> None:
    """Delete a review's folder, whose uploaded files have these names; the mark is deleted last.

    Raises InputError and deletes nothing if the folder is not marked, contains anything that linker did not write, or
    is being deleted or indexed by another process; IndexesError if the index cannot be deleted.
    """
    try:
        with _locked(folder) as top:
            if other := _foreign(folder, uploads):
                raise InputError(
                    f"{other} was not written by linker, so nothing was deleted: move it elsewhere and try again"
                )
            for name in (INDEX, UNFINISHED + INDEX):
                dropping.discard(folder / name)
            for name in FOLDERS:
                _remove_folder(name, top, uploads)
            for name in _names(top):
                if name not in (ABOUT, LOCK) and (_FILE.fullmatch(name) or _LEDGER.fullmatch(name)):
                    os.unlink(name, dir_fd=top)
            for name in (ABOUT, LOCK):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=top)
            folder.rmdir()
        writing.sync(folder.parent)
    except OSError as e:
        raise InputError(f"cannot delete {folder}: {e.strerror} ({e.filename})") from e


def clear(folder: Path) -> None:
    """Delete a folder of links if it exists. Raises InputError if it contains anything else."""
    if not os.path.lexists(folder):
        return
    others = [
        p for p in (folder, *folder.iterdir()) if p.is_symlink() or (p != folder and p.name not in LINK_FILES)
    ]
    if others:
        raise InputError(f"{others[0]} was not written by linker: move it elsewhere and try again")
    for name in LINK_FILES:
        (folder / name).unlink(missing_ok=True)
    folder.rmdir()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Yield the descriptor of a marked folder, locked exclusively by this process."""
    if folder.is_symlink() or not is_marked(folder):
        raise InputError(f"{folder} lacks linker's mark, so nothing was deleted: delete it yourself")
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        lock = os.open(LOCK, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=top)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield top
        finally:
            os.close(lock)
    except BlockingIOError:
        raise InputError(f"another process is deleting {folder}: wait for it") from None
    finally:
        os.close(top)


def _foreign(folder: Path, uploads: Collection[str]) -> Path | None:
    """Return a file or folder in a review's folder that linker did not write, or None."""
    for path in sorted(folder.iterdir()):
        if path.name in (INDEX, UNFINISHED + INDEX) and _is_folder(path):
            if other := store.foreign(path):
                return other
        elif path.name in FOLDERS and _is_folder(path):
            for file in sorted(path.iterdir()):
                if not _is_file(file) or not _is_ours_in(path.name, file.name, uploads):
                    return file
        elif not _is_file(path) or not (_FILE.fullmatch(path.name) or _is_of_ledger(path)):
            return path
    return None


def _is_ours_in(folder: str, name: str, uploads: Collection[str]) -> bool:
    return name in (uploads if folder == UPLOADS else LINK_FILES) or bool(_PART.fullmatch(name))


def _is_of_ledger(path: Path) -> bool:
    found = _LEDGER.fullmatch(path.name)
    if found is None:
        return False
    return bool(found["beside"]) or path.stat().st_size == 0 or is_ledger(path)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _remove_folder(name: str, top: int, uploads: Collection[str]) -> None:
    """Delete a folder whose files were all found to be ours."""
    with contextlib.suppress(FileNotFoundError):
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
        try:
            for file in _names(inner):
                if _is_ours_in(name, file, uploads):
                    os.unlink(file, dir_fd=inner)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _head(path: Path, size: int) -> bytes:
    """Return the first bytes of a regular file, empty for anything else. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(size) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
