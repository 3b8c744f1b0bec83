"""The uploaded files of a review: stored completely or not at all, under names that are safe anywhere."""

import os
import re
import shutil
import tempfile
import unicodedata
from pathlib import Path
from typing import BinaryIO

from indexes.disk.writing import NO_LINKS, sync
from indexes.errors import Reason
from linker.base.errors import InputError
from linker.corpora.dialects import kind_of
from linker.review.project import Project

SUFFIXES = (".csv", ".tsv", ".xlsx", ".jsonl", ".ndjson", ".json", ".ris", ".nbib", ".asreview")
_KIND = re.compile(r"\.(?:xlsx|asreview|(?:csv|tsv|jsonl|ndjson|json|ris|nbib)(?:\.gz)?)$", re.IGNORECASE)
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def store(project: Project, name: str, content: BinaryIO, role: str = "posts") -> Path:
    """Store an uploaded file in the review's folder and return its path; if the name is taken, a number is added to it.

    project.json records it with its role: linker never deletes a file that is not recorded.

    Raises InputError if the file type is not supported, the file is empty, or the disk is full.
    """
    stem, suffix = safe_name(name)
    folder = project.uploads
    temporary = ""
    try:
        folder.mkdir(0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".part", delete=False) as file:
            temporary = file.name
            shutil.copyfileobj(content, file, 1 << 20)
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
        if not size:
            raise InputError(
                Reason(f"{name} is empty: choose the file with the texts", "empty-file", name=name)
            )
        path = _place(Path(temporary), folder, stem, suffix)
        sync(folder)
        try:
            project.describe(roles={**project.about.get("roles", {}), path.name: role})
        except InputError:
            path.unlink()
            raise
    except OSError as e:
        raise InputError(f"cannot store {name}: {e.strerror}") from e
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
    return path


def safe_name(name: str) -> tuple[str, str]:
    """Return the stem and suffix (with .gz, if present) of an uploaded file's name, in ASCII characters.

    Raises InputError if the suffix is not supported.
    """
    kind = _KIND.search(name)
    if kind is None:
        text = (
            f"{name}: linker reads CSV, TSV, XLSX, JSON Lines, RIS, NBIB and ASReview ({', '.join(SUFFIXES)}): "
            "save the table in one of these formats"
        )
        raise InputError(Reason(text, "other-kind", name=name))
    last = name[: kind.start()].replace("\\", "/").rpartition("/")[2]
    plain = unicodedata.normalize("NFKD", last).encode("ascii", "ignore").decode()
    return _OTHER.sub("-", plain).strip(".-_")[:80] or "file", kind[0].lower()


def _place(temporary: Path, folder: Path, stem: str, suffix: str) -> Path:
    """Give the file the first free name; creating a hard link fails if the name exists, and overwrites nothing."""
    for number in range(1, 10_000):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}{suffix}"
        try:
            _name(temporary, path)
        except FileExistsError:
            continue
        return path
    raise InputError(f"{folder} has too many files named {stem}: rename the file")


def _name(temporary: Path, path: Path) -> None:
    """Give the file this name. Raises FileExistsError if it is taken."""
    try:
        path.hardlink_to(temporary)
    except OSError as e:
        if e.errno not in NO_LINKS:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))  # creating the file reserves the name
        temporary.replace(path)


def remove(project: Project, name: str) -> None:
    """Delete an uploaded file of a review. Raises InputError if there is no file of this name."""
    path = next((path for path in stored(project) if path.name == name), None)
    if path is None:
        raise InputError(
            Reason(f"this review has no file {name!r}: it may have been deleted already", "gone")
        )
    path.unlink(missing_ok=True)


def is_table(path: Path) -> bool:
    """Return whether columns can be added to a file's rows: RIS, NBIB and ASReview projects have no rows."""
    return kind_of(path.name) not in ("references", "asreview")


def stored(project: Project) -> list[Path]:
    """Return the uploaded files of a review, in the order of their names."""
    if project.folder is None or not project.uploads.is_dir():
        return []
    return sorted(
        p for p in project.uploads.iterdir() if p.is_file() and not p.is_symlink() and p.name[0] != "."
    )
