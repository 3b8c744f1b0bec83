"""Files that survive faults: durable writes, checksums, one writer's lock, the atomic commit, verification.

An index directory is a sequence of committed generations. Files are written once and never changed; a
generation is the set of files its manifest lists, and replacing the manifest (one rename) commits it. What
else lies in the data folders is left over from an interrupted writer and is swept by the next one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Self

import xxhash

from indexes import faults
from indexes import manifest as manifests
from indexes.interface import DamagedError, IndexesError, LockedError
from indexes.manifest import FileRecord, Manifest

SEGMENTS, DELETED, TEXT, GRAPH, QUARANTINE, ENCODER, SCRATCH, GENERATIONS = (
    "segments", "deleted", "text", "graph", "quarantine", "encoder", "scratch", "generations",
)  # fmt: skip
FOLDERS = (SEGMENTS, DELETED, TEXT, GRAPH, QUARANTINE, ENCODER, SCRATCH, GENERATIONS)
LOCK = "lock"


@contextlib.contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Turn the operating system's refusals into errors that name the file and the remedy."""
    try:
        yield
    except OSError as e:
        remedy = {
            errno.ENOSPC: "free some space and go on with --resume",
            errno.EDQUOT: "free some space and go on with --resume",
            errno.EFBIG: "files may not become that large here: raise the limit (`ulimit -f`)",
            errno.EROFS: "the file system is read-only: choose another directory",
            errno.EACCES: "check the permissions of the directory",
        }.get(e.errno or 0, "check the directory and try again")
        where = f" ({e.filename})" if e.filename else ""
        raise IndexesError(
            f"{what} failed: {e.strerror or e}{where}; what was committed before is intact: {remedy}"
        ) from e


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


def record_of(path: Path) -> FileRecord:
    """Return the size and checksum of a file as it is on the disk."""
    digest, size = xxhash.xxh3_128(), 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
            size += len(block)
    return FileRecord(size, digest.hexdigest())


def replace_manifest(directory: Path, manifest: Manifest) -> None:
    """Commit: put the manifest in place, atomically and durably."""
    replace_file(directory / manifests.NAME, manifests.dump(manifest))


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


def open_lock(directory: Path, flags: int = 0) -> IO[bytes]:
    """Open the lock's file itself for reading and writing. Raises IndexesError where it is a link or no file."""
    path = directory / LOCK
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise IndexesError(
            f"{path} is not a file of linker's: move it elsewhere, or choose another directory"
        )
    return os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW | flags, 0o666), "r+b")


@contextlib.contextmanager
def write_lock(directory: Path) -> Iterator[None]:
    """Hold the index for writing. The lock goes with the process, so a killed writer leaves none behind."""
    path = directory / LOCK
    with open_lock(directory, os.O_CREAT) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # a drop deletes the file: then this is the lock of an index that is no more
            if os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError):
            raise LockedError(
                f"another process is writing to {directory}: wait until it has ended, or stop it"
            ) from None
        yield


def damage(directory: Path, manifest: Manifest) -> list[str]:
    """Compare every listed file with its record; return one line for each that differs, naming it."""
    return [
        line
        for name, record in sorted(manifest.files.items())
        if (line := _damage_of(directory / name, record))
    ]


def _damage_of(path: Path, expected: FileRecord) -> str | None:
    try:
        found = record_of(path)
    except FileNotFoundError:
        return f"{path}: missing"
    except OSError as e:
        return f"{path}: cannot be read ({e.strerror})"
    if found.bytes != expected.bytes:
        return f"{path}: {found.bytes} bytes instead of {expected.bytes}"
    return None if found == expected else f"{path}: content differs from its checksum"


def load_checked(directory: Path) -> Manifest:
    """Read the manifest and check every file it lists, so that a damaged index never answers in silence.

    A writer may replace the generation meanwhile; then the newer one is read.
    """
    manifest = manifests.load(directory)
    while lines := damage(directory, manifest):
        newer = manifests.load(directory)
        if newer.generation == manifest.generation:
            raise DamagedError("; ".join(lines) + ": restore the file from a backup, or rebuild the index")
        manifest = newer
    return manifest


def own_files(folder: Path) -> list[Path]:
    """Return a model folder's own files, sorted; what lies in its subfolders is the training's state."""
    return sorted(path for path in folder.iterdir() if path.is_file())


def copy_folder(directory: Path, name: str, folder: Path) -> dict[str, FileRecord]:
    """Copy a folder's own files durably into the new folder `name` of the index; return their records."""
    target = directory / name
    target.mkdir(parents=True, exist_ok=True)
    files = {
        f"{name}/{path.name}": write_durably(target / path.name, [path.read_bytes()])
        for path in own_files(folder)
    }
    for made in (target, target.parent, directory):
        sync(made)
    return files
