"""The columns of a file whose names are not the usual ones, guessed from its content, and a note on the guess."""

import itertools
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from linker.base.errors import InputError
from linker.corpora.dialects import DELIMITERS, Kind, format_of, kind_of, real_kind
from linker.corpora.previews import json_objects, table_preview, table_rows
from linker.corpora.records import BadLine, Columns, Records
from linker.corpora.roles import Role
from linker.corpora.tables import columns_in, lacks_header, unique_names
from linker.corpora.workbooks import sheet_names

ROWS = 100  # rows that show whether the first one is a header


def describe(path: Path, columns: Columns, *, queries: bool = False) -> str:
    """Return a note on what was guessed about a table (its columns, and an unusual format or sheet), or "".

    With `queries`, the file holds queries, and a TSV file may have no header.
    """
    if (kind := _kind_of(path)) is None:
        return ""
    guesses, how = list[str](), format_of(path, kind, columns)
    if how.encoding not in (columns.encoding, "utf-8", None):
        guesses.append(f"encoding {how.encoding}")
    if kind == "csv" and how.delimiter not in (columns.delimiter, ",", None):
        guesses.append(f"columns separated by {DELIMITERS.get(how.delimiter, repr(how.delimiter))}")
    if kind == "xlsx" and not columns.sheet:
        sheet, sheets = sheet_names(path)
        guesses += [f"sheet {sheet!r}"] if sheet != sheets[0] else []
    how = columns if queries and kind == "tsv" else in_header(path, how)
    names = ((role, getattr(how, role)) for role in ("id", "title", "text"))
    guesses += [
        f"{role} from {name!r}" if name else "ids made from the content"
        for role, name in names
        if name != getattr(columns, role)
    ]
    guesses += [f"column names in row {how.header_row}"] if how.header_row != columns.header_row else []
    return f"{path}: {', '.join(guesses)}" if guesses else ""


def in_header(path: Path, columns: Columns) -> Columns:
    """Return `columns` with the names that the file uses, guessed if need be. Raises InputError if one is missing."""
    kind = _kind_of(path)
    if kind is None:
        return columns
    if kind == "jsonl":
        fields = set(next(json_objects(path, columns.encoding), ()))
        return (guess_columns(path, columns) if fields and _lacks(columns, fields) else None) or columns
    rows = table_rows(path, kind, format_of(path, kind, columns))
    start = [fields for _, fields in itertools.islice(rows, 2)]
    if not start or (kind == "tsv" and lacks_header(start, columns)):
        return columns
    try:
        return columns_in(path, unique_names(start[0]), columns)
    except InputError:
        if (guess := guess_columns(path, columns)) is None:
            raise
        return guess


def check_names(paths: Sequence[Path], columns: Columns) -> None:
    """Raise InputError if `columns` name a column for the ids or texts that none of the files has."""
    by_id, by_text = (replace(columns, usual=False, **one) for one in ({"text": "text"}, {"id": None}))
    for name, alone in ((columns.id, by_id), (columns.text, by_text)):
        if name in (None, "id", "text"):
            continue
        errors = list[InputError]()
        for path in paths:
            try:
                in_header(path, alone)
            except InputError as e:
                errors.append(e)
        if errors and len(errors) == len(paths):
            raise errors[0]


def guess_columns(path: Path, columns: Columns) -> Columns | None:
    """Return `columns` with those that the file lacks replaced by a guess from the content; None if that fails.

    Without a column for the ids, they are made from the content. Columns that are not the default ones stay.
    """
    kind = _kind_of(path)
    if kind is None:
        return None
    try:
        preview = table_preview(path, kind, columns, ROWS)
        guess = preview.guess()
    except InputError:
        return None
    roles: dict[str, Any] = {}
    known: dict[Role, Sequence[str]] = {"id": columns.ids, "text": columns.texts, "title": ("title",)}
    for role, names in known.items():
        free = columns.usual or getattr(columns, role) == getattr(Columns(), role)
        if free and names and set(names).isdisjoint(preview.columns):
            roles[role] = getattr(guess, role)
    texts = [row.get(guess.text, "") for row in preview.rows]
    guess = replace(columns, **roles, header_row=guess.header_row or columns.header_row)
    is_record = "text" in roles and _is_record(guess.text, texts)
    return None if _lacks(guess, preview.columns) or is_record or guess == columns else guess


def or_guessed(path: Path, columns: Columns, read: Callable[[Columns], Records]) -> Records:
    """Yield what `read` returns for `columns` or, if the file lacks some of them, for the columns that are guessed."""
    records, guess = read(columns), None
    try:
        first = next(records, None)
    except InputError:
        if (guess := guess_columns(path, columns)) is None:
            raise
    else:
        if first and isinstance(first[1], BadLine) and getattr(first[1].reason, "cause", "") == "no-column":
            guess = guess_columns(path, columns)
        if first and guess is None:
            yield first
            yield from records
    if guess:
        yield from read(guess)


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
