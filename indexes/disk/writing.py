"""Files that survive a crash and a power loss: written whole, flushed, with a checksum of what was meant."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import xxhash

from indexes.disk import faults


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Size and checksum (xxh3, 128 bits, hexadecimal) of one file."""

    bytes: int
    xxh3: str


def sync(path: Path) -> None:
    """Flush a file's or a folder's content to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder unless it is there, with those that contain it; afterwards the way to it is on the disk."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder.resolve(), *missing):
        with contextlib.suppress(PermissionError):  # one may enter a folder that one may not open
            sync(path.parent)


class DurableFile:
    """A new file that is on the disk, whole, when its `with` block has ended; `record` tells what was written.

    Size and checksum are of what was handed to `write`, so that a later check finds whatever became of it.
    """

    def __init__(self, path: Path) -> None:
        """Create the file, which must not be there. Raises OSError."""
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
        """Size and checksum of what was written."""
        return FileRecord(self._size, self._digest.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file as file:
            if kind is None:
                faults.point("file.unflushed")
                file.flush()
                os.fsync(file.fileno())


def write_durably(path: Path, parts: Iterable[bytes | memoryview]) -> FileRecord:
    """Write a new file, flush it to the disk and return its size and checksum."""
    with DurableFile(path) as file:
        for part in parts:
            file.write(part)
    return file.record


def replace_file(path: Path, data: bytes) -> None:
    """Put a file in place, or in that of an older one, atomically and durably."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    write_durably(temporary, [data])
    faults.point("manifest.written")
    temporary.replace(path)
    faults.point("manifest.replaced")
    sync(path.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file; copy it where the file system has no hard links."""
    try:
        target.hardlink_to(source)
    except OSError as e:
        if e.errno not in (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP):
            raise
        shutil.copyfile(source, target)
