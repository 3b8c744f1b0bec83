"""Find the file that a position is in, and the files after it, under the names to which a logger rotated them."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash

WINDOW = 4096  # a file is identified by up to this many bytes before the position


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file has been read: whole lines and their bytes, its inode, and a digest of the last bytes read."""

    offset: int = 0
    lines: int = 0
    inode: int = 0
    digest: str = ""


def digest(descriptor: int, offset: int) -> str:
    """Return the digest of up to WINDOW bytes before `offset`, "" at the beginning of a file."""
    start = max(0, offset - WINDOW)
    return xxhash.xxh3_64_hexdigest(os.pread(descriptor, offset - start, start)) if offset else ""


def holds(path: Path, position: Position) -> bool:
    """Return whether the file at `path` is the one that was read up to `position`, under this name or another.

    A file that was truncated, or rewritten in the same inode, is not: the bytes before the position differ.
    """
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_size < position.offset:
                return False
            if not position.digest:  # nothing was read, or the position is from an earlier version
                return state.st_ino == position.inode
            return digest(file.fileno(), position.offset) == position.digest
    except OSError:
        return False


def find(path: Path, position: Position) -> Path | None:
    """Return the file that was read up to `position`: `path`, or where it was moved or copied in its folder.

    A file with the previous inode takes precedence, since a copy may be older than the file.
    """
    files = [path, *(other for other in _files(path.parent) if other != path)]
    found = [file for file in files if holds(file, position)]
    return min(found, key=lambda file: file.stat().st_ino != position.inode, default=None)


def following(path: Path, inode: int) -> Path | None:
    """Return the file that follows the one with this inode: a rotated file, or `path`; None if that has no content yet.

    Rotated files are those whose names differ in digits only (posts.jsonl.1, posts.jsonl.2) and were changed later.
    """
    current = _state(path)
    if current is None or current.st_ino == inode:
        return None
    rotated = {file: state for file in _files(path.parent) if (state := _state(file))}
    ended = next((file for file, state in rotated.items() if state.st_ino == inode), None)
    if ended is not None:
        since, family = rotated[ended].st_mtime_ns, _family(ended)
        later = [
            file
            for file, state in rotated.items()
            if file not in (path, ended) and _family(file) == family and state.st_mtime_ns > since
        ]
        if later:
            return min(later, key=lambda file: rotated[file].st_mtime_ns)
    return path if current.st_size else None


def _family(path: Path) -> str:
    return re.sub(r"\d+", "#", path.name)


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.iterdir() if _state(file) is not None)


def _state(path: Path) -> os.stat_result | None:
    """Return the status of a regular file; None for anything else, and if the file is gone by now."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state if stat.S_ISREG(state.st_mode) else None
