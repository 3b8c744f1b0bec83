"""Read a sheet of an XLSX workbook; the first non-empty row names the columns."""

import contextlib
import itertools
import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import orjson

from indexes.errors import Reason, reason_of
from linker.base.errors import InputError
from linker.base.files import open_input
from linker.base.lines import MAX_LINE
from linker.corpora.records import (
    BadLine,
    Columns,
    ContentIds,
    Records,
    UnusableError,
    make_document,
    too_long,
    wrong_width,
)
from linker.corpora.tables import columns_in, unique_names

Value = str | int | float | bool | None
MAX_PART = 1 << 30  # bytes of one unpacked part of a workbook: the shared texts are held in memory


def read_xlsx(path: Path, columns: Columns, limit: int = MAX_LINE) -> Records:
    """Read the sheet that `columns` names, or the first with records: numbers stay numbers, dates become ISO 8601.

    Empty cells are left out of the metadata, empty rows are skipped. Raises InputError if the file is not a workbook,
    or lacks the sheet or a column.
    """
    header: list[str] = []
    ids = ContentIds()
    for number, values in sheet_rows(path, columns.sheet):
        if number < (columns.header_row or 1):
            continue
        if not header:
            header = unique_names(["" if value is None else str(value) for value in _trim(values)])
            columns = columns_in(path, header, columns)
            continue
        raw = orjson.dumps(values)
        try:
            yield number, _document(header, values, columns, ids, len(raw), limit)
        except UnusableError as e:
            yield number, BadLine.of(path, number, reason_of(e), raw)


def _document(
    header: list[str], values: list[Value], columns: Columns, ids: ContentIds, size: int, limit: int
) -> Any:
    if size > limit:
        raise UnusableError(too_long(size, limit))
    if len(_trim(values)) > len(header):
        raise UnusableError(wrong_width(len(_trim(values)), header))
    texts = {*columns.ids, *columns.texts, columns.title or "title"}
    fields: dict[str, Any] = {}
    for name, value in zip(header, values, strict=False):
        if name in texts:
            fields[name] = "" if value is None else str(value)
        elif value is not None:
            fields[name] = value
    for name in texts & set(header) - fields.keys():  # a row with fewer cells than the header
        fields[name] = ""
    id_ = None if columns.ids else ids.make(["" if value is None else str(value) for value in values])
    return make_document(fields, columns, id_)


def sheet_rows(path: Path, sheet: str | None = None) -> Iterator[tuple[int, list[Value]]]:
    """Yield the non-empty rows, each with its number from 1. Raises InputError as `read_xlsx` does."""
    with _open(path) as book:
        chosen = book[_sheet(path, book, sheet)]
        chosen.reset_dimensions()  # the dimensions stated in a file may be wrong
        for number, cells in enumerate(chosen.iter_rows(values_only=True), start=1):
            values = [_value(cell) for cell in cells]
            if _trim(values):
                yield number, values


def sheet_names(path: Path) -> tuple[str, list[str]]:
    """Return the sheet that is read unless another one is named, and all sheets. Raises InputError like `read_xlsx`."""
    with _open(path) as book:
        return _sheet(path, book, None), [sheet.title for sheet in book.worksheets]


@contextlib.contextmanager
def _open(path: Path) -> Iterator[Any]:
    from openpyxl import load_workbook

    try:
        with open_input(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about styles and extensions do not matter
            _check_sizes(path, file)
            book = load_workbook(file, read_only=True, data_only=True)
            try:
                yield book
            finally:
                book.close()
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from e
    except InputError:
        raise
    # The unpacking and parsing packages raise too many kinds of errors for damaged files.
    except Exception as e:
        text = f"{path} is not an XLSX workbook that can be read ({e}): save it again as .xlsx, or as .csv"
        raise InputError(Reason(text, "damaged-workbook", name=path.name)) from e


def _check_sizes(path: Path, file: Any) -> None:
    """Raise InputError if unpacking would exhaust the memory."""
    with zipfile.ZipFile(file) as archive:
        largest = max((part.file_size for part in archive.infolist()), default=0)
    if largest > MAX_PART:
        raise InputError(
            f"{path} holds {largest:,} bytes, unpacked: save it as .csv, which is read line by line"
        )
    file.seek(0)


def _sheet(path: Path, book: Any, wanted: str | None) -> str:
    """Return the wanted sheet or, if it is None, the first one with a record below its header, else the first."""
    names: list[str] = [sheet.title for sheet in book.worksheets]
    if not names:
        raise InputError(f"{path} holds no sheet of cells")
    if wanted is None:
        return next((name for name in names if _has_records(book[name])), names[0])
    if wanted not in names:
        raise InputError(f"{path} has no sheet {wanted!r}: it has {', '.join(names)}")
    return wanted


def _has_records(sheet: Any) -> bool:
    sheet.reset_dimensions()
    filled = (
        row for row in sheet.iter_rows(values_only=True) if any(value not in (None, "") for value in row)
    )
    return len(list(itertools.islice(filled, 2))) == 2


def _value(cell: Any) -> Value:
    """Return a cell as a JSON value: a whole number without ".0", a date at midnight without its time."""
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat()
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if cell is None or isinstance(cell, str | int | float):
        return None if cell == "" else cell
    return str(cell)


def _trim(values: list[Value]) -> list[Value]:
    end = len(values)
    while end and values[end - 1] is None:
        end -= 1
    return values[:end]
