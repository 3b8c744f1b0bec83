"""The original rows of a file, each with the id of the document made from it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from linker.base.lines import MAX_LINE
from linker.corpora.reading import numbered_records, recognise
from linker.corpora.records import BadLine, Columns, Records
from linker.corpora.tables import csv_rows, tsv_rows
from linker.corpora.workbooks import sheet_rows

Rows = Iterator[tuple[int, Sequence[Any]]]


def originals(path: Path, columns: Columns) -> Iterator[tuple[Sequence[Any], str]]:
    """Yield the header of a table, then its rows with their ids; the id is empty if a row could not be used.

    For JSON lines, the header holds the fields of all lines, in order of first appearance. Raises InputError as
    `read_corpus` does.
    """
    start = columns.header_row or 1
    rows = ((number, cells) for number, cells in _rows(path, columns) if number >= start or not number)
    for _, header in rows:
        yield header, ""
        yield from _with_ids(rows, numbered_records(path, columns))


def _with_ids(rows: Rows, records: Records) -> Iterator[tuple[Sequence[Any], str]]:
    place, id_ = 0, ""
    for number, cells in rows:
        while place < number and (following := next(records, None)):
            place, record = following
            id_ = "" if isinstance(record, BadLine) else record.id
        yield cells, id_ if place == number else ""


def _rows(path: Path, columns: Columns) -> Rows:
    kind, lines = recognise(path, columns, MAX_LINE)
    if kind == "xlsx":
        yield from sheet_rows(path, columns.sheet)
    elif kind in ("csv", "tsv"):
        how = (columns.delimiter, columns.header_row)
        rows = tsv_rows(lines) if kind == "tsv" else csv_rows(lines, MAX_LINE, *how)
        for number, _, fields in rows:
            yield number, [fields] if isinstance(fields, str) else fields
    elif kind == "jsonl":
        names = list(dict.fromkeys(name for _, fields in _objects(lines) for name in fields))
        yield 0, names
        for number, object_ in _objects(recognise(path, columns, MAX_LINE)[1]):
            yield number, [_cell(object_.get(name)) for name in names]


def _objects(lines: Iterable[tuple[int, bytes, int]]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, raw, _ in lines:
        try:
            fields = orjson.loads(raw)
        except orjson.JSONDecodeError:
            continue
        if isinstance(fields, dict):
            yield number, fields


def _cell(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, list | dict) else value
