"""Recognise our files in an index's directory: by a mark, which is written first, and by names that only we use.

Any other file belongs to somebody else: it is never deleted, and links are never followed.
"""

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
_FILES = re.compile(
    rf"(?:merging/)?segments/{_NUMBER}/(?:documents\.jsonl|offsets\.i64|ids\.txt|vectors\.f32)"
    rf"|(?:text/{_NUMBER}|scratch|merging/text)/f[0-9]{{1,2}}/(?:{_HASH}\.postings|postings\.tmp)"
    rf"|text/{_NUMBER}/{_HASH}\.(?:postings|forward)"
    rf"|(?:scratch|merging/text)/(?:{_HASH}\.(?:postings|forward)|(?:postings|forward)\.tmp)"
    rf"|deleted/{_NUMBER}\.i64|graph/{_NUMBER}\.faiss|quarantine/{_NUMBER}\.jsonl"
    r"|ranker/[0-9a-f]{16}/(?:config\.json|model\.txt|README\.md)|calibration/[0-9a-f]{16}/calibration\.json"
    r"|lexicon/[0-9a-f]{16}/[a-z]{2,3}\.json"
    rf"|generations/(?:{_NUMBER}\.json|keep)(?:\.tmp)?"
)
_FOLDERS = re.compile(
    rf"(?:segments|text|merging/segments)/{_NUMBER}|(?:text/{_NUMBER}|scratch|merging/text)/f[0-9]{{1,2}}"
    r"|encoder/[^/]{1,16}|(?:ranker|calibration|lexicon)/[0-9a-f]{16}|merging/(?:segments|text)"
)
_ENCODER = re.compile(r"encoder/[^./][^/]{0,15}/[^/]+")


def is_ours(name: str, copied: Collection[str] = ()) -> bool:
    """Return whether only we write files of this name (relative to the index); `copied` are those of its encoder."""
    return bool(_FILES.fullmatch(name)) or (name in copied and bool(is_encoder_file(name)))


def is_encoder_file(name: str) -> bool:
    """Return whether `name` could be the path of an encoder's file; these files may have any name."""
    return bool(_ENCODER.fullmatch(name)) and not name.endswith(("/.", "/.."))


def index_of(file: Path) -> Path | None:
    """Return the directory of the index that a file belongs to by its name; None if it belongs to no index."""
    for directory in file.parents:
        name = file.relative_to(directory).as_posix()
        if (name in (manifests.NAME, storage.LOCK) or is_ours(name)) and is_marked(directory):
            return directory
    return None


def is_marked(directory: Path) -> bool:
    """Return whether linker created the directory, according to its lock file's content, never just its name."""
    try:
        return _lock_content(directory).startswith(MARK)
    except (OSError, IndexesError):  # a file that cannot be opened is not our lock
        return False


def foreign(directory: Path) -> Path | None:
    """Return a file or folder that is not ours and that deleting the index would leave behind, or None."""
    if not is_marked(directory):
        return directory / storage.LOCK if any(directory.iterdir()) else None
    copied = copied_files(directory)
    if (directory / manifests.NAME).is_file():
        copied |= {name for name in manifests.load(directory).files if is_encoder_file(name)}
    own = {manifests.NAME, storage.LOCK, f"{manifests.NAME}.tmp"}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink():
            return path
        known = (
            name in storage.FOLDERS or _FOLDERS.fullmatch(name) if path.is_dir() else is_ours(name, copied)
        )
        if not known and name not in own:
            return path
    return None


@contextlib.contextmanager
def claim(directory: Path, copied: Iterable[str] = ()) -> Iterator[None]:
    """Make a vacant directory ours and hold its lock; `copied` are the encoder's files that will be copied into it.

    The mark and the folders that lead to it are on the disk before anything else is written. Raises IndexesError if
    the directory is not vacant, LockedError if another process holds the lock.
    """
    writing.make_folder(directory)
    check_vacant(directory)
    with storage.write_lock(directory):
        # Another process may have created an index meanwhile.
        check_vacant(directory)
        refuse_links(directory)
        sweep(directory, ())
        mark(directory, copied)
        writing.make_folder(directory)
        yield


def check_vacant(directory: Path) -> None:
    """Raise IndexesError if the directory holds anything but the leftovers of a creation that was killed."""
    names = {path.name for path in directory.iterdir()}
    if manifests.NAME in names:
        raise IndexesError(
            f"{directory} already holds an index: add to it with `linker index add`, "
            "continue an interrupted build with `resume`, or choose another directory"
        )
    content = _lock_content(directory)
    # The creation was killed while it wrote the mark.
    if names <= {storage.LOCK} and MARK.startswith(content):
        return
    known = {*storage.FOLDERS, storage.LOCK, f"{manifests.NAME}.tmp"} if content.startswith(MARK) else set()
    if foreign := sorted(names - known):
        raise IndexesError(f"{directory} is not empty (it holds {foreign[0]!r}): choose another directory")


def mark(directory: Path, copied: Iterable[str] = ()) -> None:
    """Record in the lock file that the directory is ours and that `copied` are its encoder's files.

    The caller must hold the lock.
    """
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
    """Return the encoder's files that were copied here or were about to be, from the lines after the lock's mark."""
    names = set()
    content = _lock_content(directory)
    for line in content.removeprefix(MARK).splitlines() if content.startswith(MARK) else ():
        with contextlib.suppress(ValueError):  # a writer that died left the last line incomplete
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
    """Raise IndexesError if a part of the index is a symbolic link: its target is not ours to change."""
    parts = (*storage.FOLDERS, storage.LOCK, manifests.NAME, f"{manifests.NAME}.tmp")
    if link := next(_links(directory, parts), None):
        raise IndexesError(
            f"{link} is a symbolic link, and an index must not leave its directory: put the target "
            "in its place, or move the whole directory and link that"
        )


def _links(folder: str | Path, names: Collection[str] = ()) -> Iterator[str]:
    """Yield the symbolic links in a folder, at any depth; in the folder itself, only `names` count."""
    # A writer may be deleting the folder.
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if names and entry.name not in names:
                continue
            if entry.is_symlink():
                yield entry.path
            elif entry.is_dir():
                yield from _links(entry.path)


def sweep(directory: Path, keep: Collection[str], folders: Iterable[str] = storage.FOLDERS) -> None:
    """Delete our files, recognised by name, that are not in `keep`; the caller must hold the lock.

    All files are opened relative to the directory's descriptor, and no link is followed. Raises OSError.
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
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return True
    return False


def _remove_empty(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):  # it contains files that are listed or not ours
        os.rmdir(name, dir_fd=folder)
