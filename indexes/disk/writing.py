"""Writes files that survive a crash and a power loss: complete, flushed, with a checksum of the intended content."""

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import xxhash

from indexes.disk import faults

# Errors from a file system that has no hard links, allows none here, or has reached its limit of them.
NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
FLUSHES = 3  # files and folders flushed at a time; with more, a commit is no faster and takes more CPU time


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Size in bytes and checksum (128-bit xxh3, hexadecimal) of one file."""

    bytes: int
    xxh3: str


def sync(path: Path) -> None:
    """Flush the content of a file or a folder to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush(paths: Iterable[Path]) -> None:
    """Flush the content of files and folders to the disk, several at a time: they wait for the disk together.

    Raises OSError once all of them have ended, if any failed.
    """
    waiting = [*paths]
    errors, todo = list[Exception](), iter(waiting)

    def work() -> None:
        for path in todo:
            try:
                sync(path)
            except Exception as e:
                errors.append(e)

    # A thread pool would refuse work once the interpreter begins to exit, when a merge may still be running.
    threads = [threading.Thread(target=work) for _ in waiting[1:FLUSHES]]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, unless they exist, and flush the entries that lead to it. Raises OSError."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder.resolve(), *missing):
        # A folder can be entered without the permission to open it.
        with contextlib.suppress(PermissionError):
            sync(path.parent)


def inode(status: os.stat_result) -> tuple[int, int]:
    """Return the identity shared by all names of a file: its device and inode."""
    return status.st_dev, status.st_ino


def record_of(path: Path) -> FileRecord:
    """Return the size and checksum of a file on the disk. Raises OSError."""
    with path.open("rb") as file:
        return content_of(file)


def content_of(file: BinaryIO) -> FileRecord:
    """Return the size and checksum of a file's unread remainder. Raises OSError."""
    digest, size = xxhash.xxh3_128(), 0
    while block := file.read(1 << 22):
        digest.update(block)
        size += len(block)
    return FileRecord(size, digest.hexdigest())


class NewFile:
    """A new file that is complete once its `with` block has ended, and durable once flushed; `record` describes it.

    Size and checksum are those of the bytes passed to `write`, so that a later check finds any difference on the disk.
    """

    def __init__(self, path: Path) -> None:
        """Create the file, which must not exist. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        self._file = os.fdopen(os.open(path, flags, 0o666), "wb", buffering=1 << 20)
        self._digest, self._size = xxhash.xxh3_128(), 0

    def write(self, part: bytes | memoryview) -> None:
        """Append bytes. Raises OSError."""
        self._file.write(part)
        self._digest.update(part)
        self._size += len(part) if isinstance(part, bytes) else part.nbytes

    @property
    def record(self) -> FileRecord:
        """Size and checksum of the written data."""
        return FileRecord(self._size, self._digest.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        faults.point("file.unflushed")
        self._file.close()


def write(path: Path, parts: Iterable[bytes | memoryview]) -> FileRecord:
    """Write a new file, and return its size and checksum; `flush` makes it durable. Raises OSError."""
    with NewFile(path) as file:
        for part in parts:
            file.write(part)
    return file.record


def replace_file(path: Path, data: bytes, after: Iterable[Path] = ()) -> None:
    """Create a file, or replace an older one, atomically and durably, once the paths `after` are durable.

    Raises OSError.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    write(temporary, [data])
    flush([*after, temporary])
    faults.point("manifest.written")
    temporary.replace(path)
    faults.point("manifest.replaced")
    sync(path.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file, or copy it if the file system has no hard links. Raises OSError."""
    try:
        target.hardlink_to(source)
    except OSError as e:
        if e.errno not in NO_LINKS:
            raise
        shutil.copyfile(source, target)
