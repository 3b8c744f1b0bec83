"""Look into a file before it is indexed: its columns, what they seem to be for, its first rows, how it is written."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from linker.corpora.dates import date_formats
from linker.corpora.dialects import DELIMITERS, check_encoding, guess_delimiter, guess_encoding, head
from linker.corpora.reading import KINDS
from linker.corpora.records import Columns
from linker.corpora.roles import Role, guess_roles
from linker.corpora.tables import csv_rows, tsv_rows
from linker.corpora.workbooks import sheet_names, sheet_rows
from linker.errors import InputError
from linker.lines import read_lines

SAMPLE = 1000  # rows from which roles are guessed


@dataclass(frozen=True, slots=True)
class Preview:
    """What a file seems to hold.

    `roles` gives columns their role; those without one become metadata. `rows` are the first records, texts by column.
    `date_formats` are the formats in which the date column can be read, the likeliest first: more than one where days
    and months cannot be told apart. `encoding` and `delimiter` are None where the kind of file has none.
    """

    path: Path
    kind: str
    columns: Sequence[str]
    roles: Mapping[str, Role]
    rows: Sequence[Mapping[str, str]]
    date_formats: Sequence[str] = ()
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    sheets: Sequence[str] = field(default=())

    def column(self, role: Role) -> str | None:
        """Return the column that has a role, or None."""
        return next((name for name, known in self.roles.items() if known == role), None)

    def guess(self) -> Columns:
        """Return how to read the file if every guess is right; without an id column, ids are made from the content."""
        return columns_of(
            self.roles,
            self.date_formats[0] if self.date_formats else None,
            self.encoding,
            self.delimiter,
            self.sheet,
        )


def columns_of(
    roles: Mapping[str, Role],
    date_format: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Columns:
    """Return how to read a file whose columns have these roles, one column each.

    Without an id, ids are made from the content; a column for date, url, author or language becomes the metadata field
    of that name, and a date is converted to ISO 8601 if its format is given. Raises InputError without a text.
    """
    by_role = {role: name for name, role in roles.items()}
    if len(by_role) < len(roles):
        raise InputError("two columns have the same role: choose one of them")
    title = by_role.get("title")
    if "text" not in by_role:
        raise InputError("no column is named for the text: choose the one that holds it")
    names = tuple((by_role[role], role) for role in ("date", "url", "author", "language") if role in by_role)
    return Columns(by_role.get("id"), by_role["text"], title, names, date_format, encoding, delimiter, sheet)


def preview(
    path: Path,
    rows: int = 5,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Preview:
    """Return what a CSV, TSV, XLSX or JSONL file seems to hold, from its first thousand rows.

    What is given is not guessed. Raises InputError where the file cannot be read, or is of another kind.
    """
    kind = KINDS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if kind not in ("csv", "tsv", "xlsx", "jsonl"):
        raise InputError(f"{path} is no table: give a .csv, .tsv, .xlsx or .jsonl file")
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    sheets: list[str] = []
    if kind == "xlsx":
        sheets = sheet_names(path)
        sheet, encoding, delimiter = sheet or next(iter(sheets), None), None, None
    elif kind != "jsonl":
        encoding = check_encoding(encoding) if encoding else guess_encoding(path)
        delimiter = "\t" if kind == "tsv" else delimiter or guess_delimiter(head(path, encoding))
    records = list(itertools.islice(_records(path, kind, encoding, delimiter, sheet), SAMPLE))
    names = list(dict.fromkeys(name for record in records for name in record))
    if not records:
        raise InputError(f"{path} holds no records that can be read")
    table = {name: [record.get(name, "") for record in records] for name in names}
    roles = guess_roles(table)
    dated = next((name for name, role in roles.items() if role == "date"), None)
    formats = date_formats([v for v in table[dated] if v.strip()]) if dated else []
    return Preview(path, kind, names, roles, records[:rows], formats, encoding, delimiter, sheet, sheets)


def describe(path: Path) -> str:
    """Return how a CSV file is written where it is not plain UTF-8 with commas, for a note; else an empty text."""
    kind = KINDS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if kind not in ("csv", "tsv") or not path.is_file():
        return ""
    encoding = guess_encoding(path)
    delimiter = guess_delimiter(head(path, encoding)) if kind == "csv" else ","
    found = [] if encoding == "utf-8" else [f"encoding {encoding}"]
    found += (
        [] if delimiter == "," else [f"columns separated by {DELIMITERS.get(delimiter, repr(delimiter))}"]
    )
    return f"{path}: {', '.join(found)}" if found else ""


def _records(
    path: Path, kind: str, encoding: str | None, delimiter: str | None, sheet: str | None
) -> Iterator[dict[str, str]]:
    """Yield the records of a file that can be read, texts by field; bad lines are for the quarantine to tell of."""
    if kind == "jsonl":
        for _, raw, _ in read_lines(path, encoding=encoding):
            try:
                value = orjson.loads(raw)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict):
                inner = value.pop("metadata", {})
                whole = {**value, **inner} if isinstance(inner, dict) else value
                yield {name: _text(field) for name, field in whole.items()}
        return
    header: list[str] = []
    for fields in _rows(path, kind, encoding, delimiter, sheet):
        if not header:
            header = [name.strip() for name in fields]
        elif len(fields) <= len(header):
            yield dict(zip(header, itertools.chain(fields, itertools.repeat("")), strict=False))


def _rows(
    path: Path, kind: str, encoding: str | None, delimiter: str | None, sheet: str | None
) -> Iterator[list[str]]:
    if kind == "xlsx":
        for _, values in sheet_rows(path, sheet):
            while values and values[-1] is None:
                values.pop()
            yield [_text(value) for value in values]
        return
    lines = read_lines(path, encoding=encoding)
    for _, _, fields in tsv_rows(lines) if kind == "tsv" else csv_rows(lines, delimiter=delimiter):
        if not isinstance(fields, str):
            yield fields


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode() if isinstance(value, dict | list | bool) else str(value)
