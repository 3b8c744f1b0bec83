"""Opens files of an untrusted directory: only regular files inside it, reached without following a link."""

import contextlib
import errno
import mmap
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np

from indexes.interface import DamagedError

REMEDY = "restore it from a backup, or rebuild the index"


@contextlib.contextmanager
def open_inside(directory: Path, name: str) -> Iterator[BinaryIO]:
    """Open the file `name` (relative, "/" between its parts) of `directory` for reading.

    Raises OSError, and DamagedError if anything on the way below `directory` is a link, or the file is a device,
    a pipe or a folder: nothing is read from it, and opening does not block.
    """
    *folders, last = PurePosixPath(name).parts
    at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise _not_a_file(directory / name) from None
        raise
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_a_file(directory / name)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _not_a_file(path: Path) -> DamagedError:
    return DamagedError(f"{path} is not a regular file but a link, a device, a pipe or a folder: {REMEDY}")


def map_file(path: Path) -> mmap.mmap:
    """Return a read-only mapping of a file, opened as by `open_inside`. Raises OSError, DamagedError."""
    with open_inside(path.parent, path.name) as file:
        if not os.fstat(file.fileno()).st_size:
            raise DamagedError(f"{path} is empty: {REMEDY}")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def mapping_of(array: Any) -> mmap.mmap | None:
    """Return the mapped file that holds an array's data, if there is one."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array if isinstance(array, mmap.mmap) else None


def give_back(mapped: mmap.mmap) -> None:
    """Let the kernel reclaim the pages of a mapped file; pages that are read again are loaded again."""
    if hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


def expect(mapped: mmap.mmap, *, scattered: bool) -> None:
    """Tell the kernel whether to read only a mapped file's touched pages, or also the pages after them."""
    if hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_RANDOM if scattered else mmap.MADV_NORMAL)


def is_whole(mapped: mmap.mmap | None) -> bool:
    """Return whether a mapped file still has its full length; reading past its end would kill the process."""
    return mapped is None or mapped.size() >= len(mapped)


def check_length(mapped: mmap.mmap | None, what: object) -> None:
    """Raise DamagedError if a mapped file has become shorter."""
    if not is_whole(mapped):
        raise DamagedError(f"{what} was cut off after it was opened: {REMEDY}, and open it again")
