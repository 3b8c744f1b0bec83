"""The apparent content of a table: its columns, their likely roles, its first rows, its format."""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from indexes.errors import Reason
from linker.base.errors import InputError
from linker.base.lines import read_lines
from linker.corpora.dates import date_formats
from linker.corpora.dialects import Kind, format_of
from linker.corpora.records import IDS, TEXTS, Columns
from linker.corpora.roles import Role, guess_roles
from linker.corpora.tables import csv_rows, tsv_rows, unique_names
from linker.corpora.workbooks import sheet_names, sheet_rows

SAMPLE = 1000  # rows used to guess roles
USUAL = {*IDS, *TEXTS}


@dataclass(frozen=True, slots=True)
class Preview:
    """The apparent content of a file.

    `roles` gives columns their role; those without one become metadata. `rows` are the first records, as texts by
    column. `date_formats` are the formats in which the date column can be read, most likely first: more than one if
    days and months cannot be distinguished. `encoding` and `delimiter` are None if the kind of file has none.
    `header_row` is the row that names the columns, as a spreadsheet counts; None for JSON lines.
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
    header_row: int | None = None

    def column(self, role: Role) -> str | None:
        """Return the column that has a role, or None."""
        return next((name for name, known in self.roles.items() if known == role), None)

    def guess(self) -> Columns:
        """Return how to read the file if every guess is right; without an id column, ids come from the content."""
        return columns_of(
            self.roles,
            self.date_formats[0] if self.date_formats else None,
            self.encoding,
            self.delimiter,
            self.sheet,
            self.header_row,
        )


def columns_of(
    roles: Mapping[str, Role],
    date_format: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
) -> Columns:
    """Return how to read a file whose columns have these roles, each role at most once.

    Without an id, ids are made from the content; a column for date, url, author or language becomes the metadata field
    of that name, and a date is converted to ISO 8601 if its format is given. Raises InputError if no column holds the
    text.
    """
    by_role = {role: name for name, role in roles.items()}
    if len(by_role) < len(roles):
        raise InputError("two columns have the same role: choose one of them")
    title = by_role.get("title")
    if "text" not in by_role:
        raise InputError("no column was chosen for the text: choose the one that contains it")
    names = tuple((by_role[role], role) for role in ("date", "url", "author", "language") if role in by_role)
    header_row = None if header_row == 1 else header_row
    return Columns(
        by_role.get("id"), by_role["text"], title, names, date_format, encoding, delimiter, sheet,
        header_row=header_row,
    )  # fmt: skip


def table_preview(path: Path, kind: Kind, how: Columns, rows: int) -> Preview:
    """Return the apparent content of a table, or of JSON lines; `how` sets its format. Raises InputError."""
    how, sheets, header_row = format_of(path, kind, how), list[str](), None
    if kind == "xlsx":
        first, sheets = sheet_names(path)
        how = replace(how, sheet=how.sheet or first)
    if kind == "jsonl":
        records = list(itertools.islice(json_objects(path, how.encoding), SAMPLE))
    else:
        start = list(itertools.islice(table_rows(path, kind, how), SAMPLE + 1))
        header_row, records = _table(start, how.header_row)
    names = list(dict.fromkeys(name for record in records for name in record))
    if not records:
        raise InputError(Reason(f"{path} holds no records that can be read", "no-records", name=path.name))
    table = {name: [record.get(name, "") for record in records] for name in names}
    roles = guess_roles(table)
    dated = next((name for name, role in roles.items() if role == "date"), None)
    formats = date_formats([v for v in table[dated] if v.strip()]) if dated else []
    return Preview(
        path,
        kind,
        names,
        roles,
        records[:rows],
        formats,
        how.encoding,
        how.delimiter,
        how.sheet,
        sheets,
        header_row,
    )


def json_objects(path: Path, encoding: str | None) -> Iterator[dict[str, str]]:
    """Yield the readable objects of JSON lines, texts by field; the quarantine reports bad lines."""
    for _, raw, _ in read_lines(path, encoding=encoding):
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            inner = value.pop("metadata", {})
            whole = {**value, **inner} if isinstance(inner, dict) else value
            yield {name: as_text(field) for name, field in whole.items()}


def _table(rows: Sequence[tuple[int, list[str]]], header_row: int | None) -> tuple[int, list[dict[str, str]]]:
    """Return the row that names the columns, guessed if not given, and the records below it."""
    if not rows:
        return header_row or 1, []
    place = 0 if header_row else guess_header([fields for _, fields in rows])
    number, names = rows[place]
    header = unique_names(names)
    records = [
        dict(zip(header, itertools.chain(fields, itertools.repeat("")), strict=False))
        for _, fields in rows[place + 1 :]
        if len(fields) <= len(header)
    ]
    return number, records


def guess_header(rows: Sequence[Sequence[str]]) -> int:
    """Return which row names the columns: the first that is about as full as most, or has a usual name.

    Titles above it fill a cell or two.
    """
    filled = [sum(bool(field.strip()) for field in fields) for fields in rows[:50]]
    usual = statistics.median(filled)
    return next(
        (
            number
            for number, count in enumerate(filled)
            if 3 * count >= 2 * usual or not USUAL.isdisjoint(rows[number])
        ),
        0,
    )


def table_rows(path: Path, kind: str, how: Columns) -> Iterator[tuple[int, list[str]]]:
    """Yield the parsable rows of a table, from its header on, each with its number; `how` sets the table's format."""
    start = how.header_row or 1
    if kind == "xlsx":
        for number, values in sheet_rows(path, how.sheet):
            while values and values[-1] is None:
                values.pop()
            if number >= start:
                yield number, [as_text(value) for value in values]
        return
    lines = read_lines(path, encoding=how.encoding)
    for number, _, fields in tsv_rows(lines) if kind == "tsv" else csv_rows(lines, delimiter=how.delimiter):
        if number >= start and not isinstance(fields, str):
            yield number, fields


def as_text(value: Any) -> str:
    """Return a JSON value as a cell of a table shows it."""
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode() if isinstance(value, dict | list | bool) else str(value)
