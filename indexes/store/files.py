"""Files that survive faults: durable writes, checksums, the writer's lock, the atomic commit, verification.

An index directory is a sequence of committed generations. Files are written once and never changed; a generation is
the set of files that its manifest lists, and replacing the manifest (one rename) commits it. Other files in the data
folders are left over from an interrupted writer, and the next writer deletes them.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from indexes.disk.reading import REMEDY, open_inside
from indexes.disk.writing import FileRecord, content_of, inode, record_of, replace_file, write
from indexes.interface import DamagedError, IndexesError, LockedError
from indexes.store import manifest as manifests
from indexes.store.records import Manifest

FOLDERS = (
    SEGMENTS, DELETED, TEXT, GRAPH, QUARANTINE, ENCODER, RANKER, CALIBRATION, LEXICON, SCRATCH, MERGING, GENERATIONS,
) = (
    "segments", "deleted", "text", "graph", "quarantine", "encoder", "ranker", "calibration", "lexicon", "scratch",
    "merging", "generations",
)  # fmt: skip
LOCK = "lock"


@contextlib.contextmanager
def disk_errors(what: str, *, resumes: bool = False) -> Iterator[None]:
    """Turn an OSError inside the block into an IndexesError with file and remedy; `what` names the operation.

    `resumes`: the operation is a build, which --resume continues; any other operation is rerun from the beginning.
    """
    try:
        yield
    except OSError as e:
        full = f"free some space and {'continue with `resume`' if resumes else 'run the command again'}"
        remedy = {
            errno.ENOSPC: full,
            errno.EDQUOT: full,
            errno.EFBIG: "files must not become that large here: raise the limit (`ulimit -f`)",
            errno.EROFS: "the file system is read-only: choose another directory",
            errno.EACCES: "check the permissions of the directory",
        }.get(e.errno or 0, "check the directory and try again")
        where = f" ({e.filename})" if e.filename else ""
        raise IndexesError(
            f"{what} failed: {e.strerror or e}{where}; what was committed before is intact: {remedy}"
        ) from e


def text_folder(directory: Path, manifest: Manifest) -> Path | None:
    """Return the folder of the generation's BM25 postings; None before the first document."""
    name = manifest.only_file(TEXT)
    return directory.joinpath(*Path(name).parts[:2]) if name else None


def replace_manifest(
    directory: Path, manifest: Manifest, earlier: Iterable[str] = (), moved_from: Iterable[Path] = ()
) -> None:
    """Commit: make the manifest's files durable, then write it, or replace the older one, atomically and durably.

    `earlier`: files that a commit has made durable, and thereby the folders that lead to them; links to those in
    `text/` need no flush either. `moved_from`: folders from which files were moved. Raises OSError.
    """
    durable = {inode((directory / name).stat()) for name in earlier if name.startswith(f"{TEXT}/")}
    new = _with_folders(manifest.files) - _with_folders(earlier)
    files = {directory / name for name in new & manifest.files.keys()}
    written = {path for path in files if inode(path.stat()) not in durable}
    # A name is durable once the folder that holds it is flushed, and a move once both folders are.
    folders = {(directory / name).parent for name in new}.union(moved_from)
    replace_file(directory / manifests.NAME, manifests.dump(manifest), sorted(written | folders))


def _with_folders(names: Iterable[str]) -> set[str]:
    """Return files and the folders that lead to them, by name."""
    return {path for name in names for path in itertools.accumulate(name.split("/"), "{}/{}".format)}


def open_lock(directory: Path, flags: int = 0) -> IO[bytes]:
    """Open the lock file for reading and writing. Raises IndexesError if it is a link or not a regular file."""
    path = directory / LOCK
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise IndexesError(
            f"{path} is not one of linker's files: move it elsewhere, or choose another directory"
        )
    return os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW | flags, 0o666), "r+b")


# Lock files held by this process, by device and inode, and the thread that holds each.
_held: dict[tuple[int, int], int] = {}
# For each directory, the lock of the only thread of this process that tries to lock its file. A merge that waits for a
# gap is therefore next, even if another thread writes without a pause, and does not have to try again and again.
_turns: dict[tuple[int, int], threading.Lock] = {}
os.register_at_fork(after_in_child=_held.clear)
os.register_at_fork(after_in_child=_turns.clear)
PAUSE = 0.005  # seconds between tries


@contextlib.contextmanager
def write_lock(directory: Path, wait: float = 0) -> Iterator[None]:
    """Hold the write lock, waiting up to `wait` seconds, but never for this thread. Raises LockedError."""
    manifests.check_directory(directory)
    with _locked(directory, wait) as file:
        key = inode(os.fstat(file.fileno()))
        _held[key] = threading.get_ident()
        try:
            yield
        finally:
            del _held[key]


def _locked(directory: Path, wait: float) -> IO[bytes]:
    """Return the lock file, open and locked, once all threads that asked before have had their turn."""
    this, deadline, create = threading.get_ident(), time.monotonic() + wait, os.O_CREAT
    turn = _turns.setdefault(inode(directory.stat()), threading.Lock())
    holder = _thread_of(directory / LOCK)
    if holder != this and turn.acquire(timeout=max(0, wait)):
        try:
            while True:
                with contextlib.ExitStack() as opened:
                    file = opened.enter_context(open_lock(directory, create))
                    holder = _try_lock(directory, file)
                    if holder is None:
                        opened.pop_all()
                        return file
                if time.monotonic() >= deadline:
                    break
                time.sleep(PAUSE)
                create = 0  # if the lock file is now gone, it was deleted with its index
        finally:
            turn.release()
    who, remedy = "another process", "wait until it has ended, or stop it"
    if holder:
        who, remedy = "this process", "end that change first"
    after = f", still after {wait:g} seconds" if wait and holder != this else ""
    raise LockedError(f"{who} is writing to {directory}{after}: {remedy}")


@contextlib.contextmanager
def merge_lock(directory: Path) -> Iterator[bool]:
    """Try to lock the folder in which segments are merged; yield whether it exists and is now locked by us."""
    folder = directory / MERGING
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The folder may have been deleted meanwhile.
            yield folder.exists() and inode(folder.stat()) == inode(os.fstat(descriptor))
            return
        yield False
    finally:
        os.close(descriptor)


def _thread_of(lock: Path) -> int | None:
    """Return the id of our thread that holds a lock file, None if there is none."""
    with contextlib.suppress(OSError):
        return _held.get(inode(lock.stat()))
    return None


def _try_lock(directory: Path, file: IO[bytes]) -> int | None:
    """Try to lock `file`. Return None on success, else the id of our thread that holds it, or 0 for another process."""
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A drop deletes the file; the lock held here then belongs to a deleted index.
        if os.fstat(file.fileno()).st_ino == (directory / LOCK).stat().st_ino:
            return None
    return _held.get(inode(os.fstat(file.fileno())), 0)


def damage(
    directory: Path, manifest: Manifest, known: Mapping[str, FileRecord] | None = None, content: bool = True
) -> list[str]:
    """Compare every listed file, except those in `known`, with its record; return one line per differing file.

    A postings file, which is named by its checksum, is known by its name in any generation's folder. If `content` is
    false, only sizes are compared.
    """
    checked = {(_kept_name(name), record) for name, record in (known or {}).items()}
    return [
        line
        for name, record in sorted(manifest.files.items())
        if (_kept_name(name), record) not in checked
        and (line := _damage_of(directory, name, record, content))
    ]


def _kept_name(name: str) -> str:
    """Return a name that is the same for a file in every generation that has it."""
    return name.rpartition("/")[2] if name.startswith(f"{TEXT}/") else name


def _damage_of(directory: Path, name: str, expected: FileRecord, content: bool) -> str | None:
    path = directory / name
    try:
        with open_inside(directory, name) as file:
            size = os.fstat(file.fileno()).st_size
            # Files of the wrong size are not read.
            if size != expected.bytes:
                return f"{path}: {size} bytes instead of {expected.bytes}"
            actual = content_of(file) if content else expected
    except FileNotFoundError:
        return f"{path}: missing"
    except OSError as e:
        return f"{path}: cannot be read ({e.strerror})"
    except DamagedError:
        return f"{path}: not a regular file but a link, a device, a pipe or a folder"
    return None if actual == expected else f"{path}: content does not match its checksum"


def check(directory: Path, files: Mapping[str, FileRecord]) -> None:
    """Raise DamagedError if files that are about to be copied have changed since they were opened."""
    lines = [line for name, record in files.items() if (line := _damage_of(directory, name, record, True))]
    if lines:
        raise DamagedError("; ".join(lines) + f": {REMEDY}")


def load_checked(
    directory: Path, known: Mapping[str, FileRecord] | None = None, content: bool = True
) -> Manifest:
    """Return the manifest after checking every file that it lists, so that damage never goes unnoticed.

    Files in `known` were checked before; if `content` is false, only sizes are compared. If a writer replaces the
    generation meanwhile, the newer one is read. Raises IndexesError if there is no index, FormatVersionError,
    DamagedError.
    """
    manifest = manifests.load(directory)
    while lines := damage(directory, manifest, known, content):
        newer = manifests.load(directory)
        if newer.generation == manifest.generation:
            raise DamagedError("; ".join(lines) + ": restore the file from a backup, or rebuild the index")
        manifest = newer
    return manifest


def own_files(folder: Path) -> list[Path]:
    """Return the files directly in a model folder, sorted; its subfolders hold the training state."""
    return sorted(path for path in folder.iterdir() if path.is_file())


def _copied(source: Path, target: Path) -> FileRecord:
    data = source.read_bytes()
    if target.is_file() and not target.is_symlink() and target.read_bytes() == data:
        return record_of(target)
    return write(target, [data])


def copy_folder(directory: Path, name: str, folder: Path) -> dict[str, FileRecord]:
    """Copy the files directly in a folder into the folder `name` of the index; return their records.

    An existing file is kept if it has the same content, as when a generation has the same ranker. Raises OSError,
    FileExistsError for a file with different content.
    """
    target = directory / name
    target.mkdir(parents=True, exist_ok=True)
    return {f"{name}/{path.name}": _copied(path, target / path.name) for path in own_files(folder)}
