"""What in an index's directory is ours: a mark that is written first, and names that only we write.

Whatever else lies there belongs to somebody else: it is neither deleted nor followed, wherever it lies.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import orjson

from indexes.disk import faults, writing
from indexes.interface import IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests

MARK = b"linker: lock and mark of an index directory; do not edit\n"
_NUMBER, _HASH = "[0-9]{6,}", "[0-9a-f]{32}"
_TANTIVY = (  # BM25's files in indexes of format 1
    rf"{_HASH}\.(?:idx|pos|term|fieldnorm|store|fast|temp|[0-9]+\.del)"
    r"|meta\.json|\.managed\.json|\.tantivy-(?:meta|writer)\.lock"
)
_FILES = re.compile(
    rf"segments/{_NUMBER}/(?:documents\.jsonl|offsets\.i64|ids\.txt|vectors\.f32)"
    rf"|text/{_NUMBER}/(?:{_HASH}\.postings|{_TANTIVY})"
    rf"|scratch/(?:{_HASH}\.postings|postings\.tmp|{_TANTIVY})"
    rf"|deleted/{_NUMBER}\.i64|graph/{_NUMBER}\.faiss|quarantine/{_NUMBER}\.jsonl"
    rf"|generations/(?:{_NUMBER}\.json|keep)(?:\.tmp)?"
)
_FOLDERS = re.compile(rf"(?:segments|text)/{_NUMBER}|encoder/[0-9a-f]{{16}}")
_ENCODER = re.compile(r"encoder/[0-9a-f]{16}/[^/]+")


def is_ours(name: str, copied: Collection[str] = ()) -> bool:
    """Say whether we alone write files of this name, relative to the index; `copied` are those of its encoder."""
    return bool(_FILES.fullmatch(name)) or (name in copied and bool(is_encoder_file(name)))


def is_encoder_file(name: str) -> bool:
    """Say whether this is a place for a file of the encoder, whose own name is the user's choice."""
    return bool(_ENCODER.fullmatch(name)) and not name.endswith(("/.", "/.."))


@contextlib.contextmanager
def claim(directory: Path, copied: Iterable[str] = ()) -> Iterator[None]:
    """Make a vacant directory ours and hold its lock; `copied` are the encoder's files that will be copied into it.

    The mark is on the disk, and the way to it, before anything else is written. Raises IndexesError, LockedError.
    """
    writing.make_folder(directory)
    check_vacant(directory)
    with storage.write_lock(directory):
        check_vacant(directory)  # another creation may have ended meanwhile
        refuse_links(directory)
        sweep(directory, ())
        mark(directory, copied)
        writing.make_folder(directory)
        yield


def check_vacant(directory: Path) -> None:
    """Raise IndexesError unless a new index may be made here: nothing but a killed creation's leftovers."""
    names = {path.name for path in directory.iterdir()}
    if manifests.NAME in names:
        raise IndexesError(
            f"{directory} already holds an index: add to it with `linker index add`, "
            "go on with an interrupted build by --resume, or choose another directory"
        )
    content = _lock_content(directory)
    if names <= {storage.LOCK} and MARK.startswith(content):  # killed while it wrote the mark
        return
    known = {*storage.FOLDERS, storage.LOCK, f"{manifests.NAME}.tmp"} if content.startswith(MARK) else set()
    if foreign := sorted(names - known):
        raise IndexesError(f"{directory} is not empty (it holds {foreign[0]!r}): choose another directory")


def mark(directory: Path, copied: Iterable[str] = ()) -> None:
    """Write into the lock, which the caller holds, that the directory is ours, and which files of an encoder are."""
    content = _lock_content(directory)
    new = [name for name in copied if name not in copied_files(directory)]
    lines = b"".join(b"\n" + orjson.dumps(name) + b"\n" for name in new)
    if content.startswith(MARK) and not lines:
        return
    with storage.open_lock(directory) as file:
        if content.startswith(MARK):
            file.seek(0, os.SEEK_END)
        else:
            file.truncate(0)
            lines = MARK + lines
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())
    writing.sync(directory)


def copied_files(directory: Path) -> set[str]:
    """Return which files of an encoder we copied here, or were about to, by the lock's lines after its mark."""
    names = set()
    content = _lock_content(directory)
    for line in content.removeprefix(MARK).splitlines() if content.startswith(MARK) else ():
        with contextlib.suppress(ValueError):  # the last line of a writer that died
            name = orjson.loads(line)
            if isinstance(name, str) and is_encoder_file(name):
                names.add(name)
    return names


def _lock_content(directory: Path) -> bytes:
    if not os.path.lexists(directory / storage.LOCK):
        return b""
    with storage.open_lock(directory) as file:
        return file.read(1 << 20)


def refuse_links(directory: Path) -> None:
    """Raise IndexesError if a part of the index is a symbolic link: what it points at is not ours to change."""
    parts = (*storage.FOLDERS, storage.LOCK, manifests.NAME, f"{manifests.NAME}.tmp")
    paths = [directory / part for part in parts]
    for folder in storage.FOLDERS:
        if not (directory / folder).is_symlink():
            for root, inner, names in os.walk(directory / folder):
                paths.extend(Path(root, name) for name in (*inner, *names))
    if link := next((path for path in paths if path.is_symlink()), None):
        raise IndexesError(
            f"{link} is a symbolic link, and an index keeps to its own directory: put what the link points at "
            "in its place, or move the whole directory and link that"
        )


def sweep(directory: Path, keep: Collection[str], folders: Iterable[str] = storage.FOLDERS) -> None:
    """Delete files of ours, by their names, that are not in `keep`; call only while holding the lock.

    Everything is reached from the directory's descriptor, and no link is followed.
    """
    copied = copied_files(directory)
    top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _unlink(f"{manifests.NAME}.tmp", top)
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                for root, inner, names, descriptor in os.fwalk(folder, topdown=False, dir_fd=top):
                    for name in names:
                        path = f"{root}/{name}"
                        if path not in keep and is_ours(path, copied) and _unlink(name, descriptor):
                            faults.point("sweep.deleted")
                    for name in inner:
                        if _FOLDERS.fullmatch(f"{root}/{name}"):
                            _remove_empty(name, descriptor)
                _remove_empty(folder, top)
    finally:
        os.close(top)


def _unlink(name: str, folder: int) -> bool:
    """Delete a regular file, if it is one, and say whether it was."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return True
    return False


def _remove_empty(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):  # it holds listed files, or another's
        os.rmdir(name, dir_fd=folder)
