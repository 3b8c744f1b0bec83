"""The columns of a file whose names are not the usual ones, guessed from its content, and a note on the guess."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from linker.base.errors import InputError
from linker.corpora.dialects import (
    DELIMITERS,
    Kind,
    guess_delimiter,
    guess_encoding,
    head,
    kind_of,
    real_kind,
)
from linker.corpora.previews import json_objects, table_preview, table_rows
from linker.corpora.records import BadLine, Columns, Records
from linker.corpora.roles import Role
from linker.corpora.tables import columns_in, lacks_header, unique_names
from linker.corpora.workbooks import sheet_names

ROWS = 100  # rows that show whether the first one is a header


def describe(path: Path, columns: Columns, *, queries: bool = False) -> str:
    """Return a note on what was guessed about a table: its columns, and its format or sheet, if it is unusual.

    `queries`: the file is one of queries, of which a TSV file may have no header.
    """
    kind, found, known = _kind_of(path), list[str](), columns
    if kind in ("csv", "tsv"):
        encoding = columns.encoding or guess_encoding(path)  # reads the whole file
        found += [] if columns.encoding or encoding == "utf-8" else [f"encoding {encoding}"]
        known = replace(known, encoding=encoding)
    if kind == "csv":
        delimiter = columns.delimiter or guess_delimiter(head(path, encoding), columns.header_row)
        if not columns.delimiter and delimiter != ",":
            found.append(f"columns separated by {DELIMITERS.get(delimiter, repr(delimiter))}")
        known = replace(known, delimiter=delimiter)
    if kind == "xlsx" and not columns.sheet:
        sheet, sheets = sheet_names(path)
        found += [f"sheet {sheet!r}"] if sheet != sheets[0] else []
    named = columns if queries and kind == "tsv" else in_header(path, known)
    pairs = ((role, getattr(named, role)) for role in ("id", "title", "text"))
    found += [
        f"{role} from {name!r}" if name else "ids made from the content"
        for role, name in pairs
        if name != getattr(columns, role)
    ]
    found += [f"column names in row {named.header_row}"] if named.header_row != columns.header_row else []
    return f"{path}: {', '.join(found)}" if found else ""


def in_header(path: Path, columns: Columns) -> Columns:
    """Return `columns` by the names in the file, or as `guessed`. Raises InputError if a table lacks a column."""
    kind = _kind_of(path)
    if kind is None:
        return columns
    if kind == "jsonl":
        fields = set(next(json_objects(path, columns.encoding), ()))
        return (guessed(path, columns) if fields and _lacks(columns, fields) else None) or columns
    encoding = None if kind == "xlsx" else columns.encoding or guess_encoding(path)
    delimiter = columns.delimiter
    if kind == "csv" and encoding:
        delimiter = delimiter or guess_delimiter(head(path, encoding), columns.header_row)
    rows = table_rows(path, kind, encoding, delimiter, columns.sheet, columns.header_row or 1)
    start = [fields for _, fields in itertools.islice(rows, 2)]
    if not start or (kind == "tsv" and lacks_header(start, columns)):
        return columns
    try:
        return columns_in(path, unique_names(start[0]), columns)
    except InputError:
        if (found := guessed(path, columns)) is None:
            raise
        return found


def guessed(path: Path, columns: Columns) -> Columns | None:
    """Return `columns` with those that the file lacks replaced by a guess from the content; None if that fails.

    Without a column for the ids, they are made from the content. Columns that are not the default ones stay.
    """
    kind = _kind_of(path)
    if kind is None:
        return None
    try:
        seen = table_preview(path, kind, columns, ROWS)
        guess = seen.guess()
    except InputError:
        return None
    roles: dict[str, Any] = {}
    known: dict[Role, Sequence[str]] = {"id": columns.ids, "text": columns.texts, "title": ("title",)}
    for role, names in known.items():
        free = columns.usual or getattr(columns, role) == getattr(Columns(), role)
        if free and names and set(names).isdisjoint(seen.columns):
            roles[role] = getattr(guess, role)
    found = replace(columns, **roles, header_row=guess.header_row or columns.header_row)
    is_record = "text" in roles and _is_record(guess.text, [row.get(guess.text, "") for row in seen.rows])
    return None if _lacks(found, seen.columns) or is_record or found == columns else found


def or_guessed(path: Path, columns: Columns, read: Callable[[Columns], Records]) -> Records:
    """Yield what `read` returns for `columns` or, if the file lacks some of them, for the columns that are guessed."""
    records, found = read(columns), None
    try:
        first = next(records, None)
    except InputError:
        if (found := guessed(path, columns)) is None:
            raise
    else:
        if first and isinstance(first[1], BadLine) and getattr(first[1].reason, "cause", "") == "no-column":
            found = guessed(path, columns)
        if first and found is None:
            yield first
            yield from records
    if found:
        yield from read(found)


def _lacks(columns: Columns, present: Collection[str]) -> bool:
    """Return whether no name for the ids, or none for the texts, is among the columns of a file."""
    return any(names and set(names).isdisjoint(present) for names in (columns.ids, columns.texts))


def _is_record(name: str, texts: Sequence[str]) -> bool:
    """Return whether the name of a column of texts is probably a text itself, because there is no header."""
    return 2 * len(name.split()) > statistics.mean(len(text.split()) for text in texts)


def _kind_of(path: Path) -> Kind | None:
    """Return the kind of a table by its name and content; None for a folder, another file or an unknown suffix."""
    kind = kind_of(path.name)
    return real_kind(path, kind) if kind in ("csv", "tsv", "xlsx", "jsonl") and path.is_file() else None
