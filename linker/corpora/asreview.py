"""Read ASReview's project files (.asreview): a zip of the dataset as uploaded and a database of labels.

Only version 3 of the format, which ASReview 3 writes, is supported; it upgrades older projects on opening.
"""

import contextlib
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from linker.base.errors import InputError
from linker.base.files import limit_queries
from linker.corpora.records import IDS, BadLine, Columns, Records

VERSION = 3
CONFIG, DATABASE, DATA = "project.json", "results.db", "data"
MOST = 1 << 30  # maximum size in bytes of an unpacked file
LONGEST = 60.0  # maximum number of seconds for reading the database
LABELS = """SELECT dataset_row, label, time, note, tags, user_id FROM record JOIN results USING (record_id)
    ORDER BY results.rowid"""


@dataclass(frozen=True, slots=True)
class Label:
    """What a project says about one record. `row` counts from 0; `label` is None if unjudged; `time` is Unix time."""

    row: int
    label: int | None
    time: float | None
    note: str
    tags: tuple[str, ...]
    user: int | None


@dataclass(frozen=True, slots=True)
class AsreviewProject:
    """An unpacked project: the files of its dataset and of its database, which exist while it is open."""

    path: Path
    dataset: Path
    database: Path

    def labels(self) -> list[Label]:
        """Return the labels of records, in the order of labelling. Raises InputError for a damaged database."""
        with self._database() as database:
            return [
                Label(row, label, time, note or "", _checked_tags(tags), user)
                for row, label, time, note, tags, user in database.execute(LABELS)
            ]

    def records(self) -> int:
        """Return how many records the project has. Raises InputError for a damaged database."""
        with self._database() as database:
            return int(database.execute("SELECT COUNT(*) FROM record").fetchone()[0])

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Yield a read-only connection for at most LONGEST seconds. Turns SQLite's errors into InputError."""
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
                connection.execute("PRAGMA trusted_schema = OFF")
                limit_queries(connection, LONGEST)
                yield connection
        except (sqlite3.Error, TypeError, ValueError) as e:
            raise InputError(f"{self.path}: cannot read {DATABASE}: {e}") from None


def _checked_tags(tags: str | None) -> tuple[str, ...]:
    """Return the labels of the tags that are checked in ASReview's groups of tags; `tags` may also be a JSON list."""
    found: list[str] = []
    for group in orjson.loads(tags or "[]") or ():
        if isinstance(group, str):
            found.append(group)
        else:
            found += [str(t.get("label") or t["export"]) for t in group.get("values", ()) if t.get("checked")]
    return tuple(found)


@contextlib.contextmanager
def open_project(path: Path) -> Iterator[AsreviewProject]:
    """Unpack a project into a temporary folder. Raises InputError if it is not a project of this version."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                name = _dataset(path, orjson.loads(archive.read(CONFIG)))
                database = _unpack(path, archive, DATABASE, Path(folder))
                dataset = _unpack(path, archive, f"{DATA}/{name}", Path(folder))
        except (zipfile.BadZipFile, KeyError, ValueError) as e:
            raise InputError(f"{path} is not an ASReview project: {e}") from None
        yield AsreviewProject(path, dataset, database)


def _dataset(path: Path, config: Any) -> str:
    """Return the name of the dataset's file. Raises InputError for a project of another version, or without one."""
    version = config.get("project_file_version", str(config.get("version"))[:1])
    if str(version) != str(VERSION):
        raise InputError(
            f"{path} is an ASReview project of version {version}: open it in ASReview 3 and export it again"
        )
    names = [dataset["name"] for dataset in config.get("datasets") or ()]
    if len(names) != 1 or PurePosixPath(names[0]).name != names[0]:
        raise InputError(f"{path}: the project has {len(names)} datasets, expected one")
    return str(names[0])


def _unpack(path: Path, archive: zipfile.ZipFile, name: str, folder: Path) -> Path:
    """Unpack one file under its base name. Raises KeyError if it is missing, InputError if it is too large."""
    if archive.getinfo(name).file_size > MOST:
        raise InputError(f"{path}: {name} has more than {MOST:,} bytes")
    out = folder / PurePosixPath(name).name
    with archive.open(name) as source, out.open("wb") as file:
        shutil.copyfileobj(source, file)
    return out


def read_project(path: Path, columns: Columns, read: Callable[[Path, Columns], Records]) -> Records:
    """Yield a project's documents with their row numbers from 0 (ASReview's record_id); `read` reads a file."""
    with open_project(path) as project:
        named = project.dataset.suffix.lower() in (".ris", ".nbib")  # these readers create ids
        records = read(project.dataset, columns if named else replace(columns, id=None))
        for row, (_, record) in enumerate(records):
            if isinstance(record, BadLine):
                yield row, replace(record, path=path)
            elif named:
                yield row, record
            else:
                metadata = dict(record.metadata)
                ids = [str(metadata.pop(name)) for name in (columns.id or "id", *IDS) if name in metadata]
                yield row, replace(record, id=ids[0] if ids else str(row), metadata=metadata)
