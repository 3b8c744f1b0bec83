"""What an uploaded file holds, for the form that asks which column is which."""

from __future__ import annotations

import csv
import gzip
import itertools
from dataclasses import dataclass
from pathlib import Path

import orjson

from linker.errors import InputError

ROWS = 5
IDS = ("_id", "id", "tweet_id", "post_id", "url", "link")
TEXTS = ("text", "contents", "content", "body", "tweet", "full_text", "message", "post")
TITLES = ("title", "headline")


@dataclass(frozen=True, slots=True)
class Look:
    """Columns and first rows of a file, and which column is probably which; empty where none is."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    id: str
    text: str
    title: str
    how: str


def look(path: Path) -> Look:
    """Return what the file holds. Raises InputError where it cannot be read."""
    opened = gzip.open if path.suffix == ".gz" else open
    name = path.name.removesuffix(".gz")
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        if name.endswith((".csv", ".tsv")):
            table = list(
                itertools.islice(csv.reader(file, delimiter="\t" if name.endswith(".tsv") else ","), ROWS + 1)
            )
            if not table:
                raise InputError(f"{path.name} is empty")
            columns, rows = table[0], table[1:]
        else:
            records = [orjson.loads(line) for line in itertools.islice(file, ROWS) if line.strip()]
            columns = list(dict.fromkeys(key for record in records for key in record))
            rows = [[str(record.get(c, "")) for c in columns] for record in records]
    return Look(
        tuple(columns),
        tuple(tuple(row) for row in rows),
        _first(columns, IDS),
        _first(columns, TEXTS),
        _first(columns, TITLES),
        "UTF-8",
    )


def _first(columns: list[str], names: tuple[str, ...]) -> str:
    lower = {column.lower(): column for column in columns}
    return next((lower[name] for name in names if name in lower), "")
