"""Read CSV and TSV with a header that names the columns."""

import csv
import dataclasses
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from indexes.errors import Reason, reason_of
from linker.base.errors import InputError
from linker.base.lines import MAX_LINE, DamagedInputError, Line
from linker.corpora.dialects import SAMPLE, SAMPLE_BYTES, SEPARATOR, guess_delimiter
from linker.corpora.records import (
    NOT_UTF8,
    BadLine,
    Columns,
    ContentIds,
    Records,
    UnusableError,
    is_utf8,
    make_document,
    too_long,
    wrong_width,
)
from linker.corpora.roles import Role, likely

# The number of the first line, the bytes, and the fields or the reason why there are none.
Row = tuple[int, bytes, list[str] | str]

MAX_RECORD_LINES = 1 << 16
# Maximum number of lines per record while lines are reread; without a low limit, stray quotes in every line would take
# quadratic time.
MAX_REREAD_LINES = 100

HEADLESS = ("id", "text")  # columns of a TSV file without a header
QUERY_IDS = {"id", "_id", "qid", "query_id", "query-id", "queryid"}
QUERY_TEXTS = {"text", "query", "query_text", "contents", "content", "body", "question", "title"}


def read_csv(path: Path, lines: Iterable[Line], columns: Columns, limit: int = MAX_LINE) -> Records:
    """Read CSV (RFC 4180: quoted fields may contain commas, quotes and newlines); the first record names the columns.

    The delimiter is guessed from the first lines, unless `columns` names it. If a record cannot be parsed (a quote
    that never closes), its first line becomes a BadLine and reading continues with the next line. Raises InputError
    if the header is unreadable or lacks a column.
    """
    return documents(path, csv_rows(lines, limit, columns.delimiter, columns.header_row), columns)


def read_tsv(path: Path, lines: Iterable[Line], columns: Columns, limit: int = MAX_LINE) -> Records:
    """Read tab-separated lines without quoting, as BEIR and TREC write them; the first line names the columns.

    The file has no header if its first line is clearly `id TAB text` like the second (MS MARCO's form). Raises
    InputError if the header is unreadable or lacks a column.
    """
    rows = tsv_rows(lines, limit)
    start = list(islice(rows, 2))
    rows = chain(start, rows)
    if lacks_header([fields for _, _, fields in start], columns):
        return _records(path, rows, HEADLESS, columns)
    return documents(path, rows, columns)


def lacks_header(first_two: Sequence[list[str] | str], columns: Columns) -> bool:
    """Return whether two lines have two fields each, and their first fields differ only in the digits (q1, q2).

    If `columns` names columns or a header, there is one.
    """
    if columns.to_remember() or columns.header_row:
        return False
    if not all(isinstance(fields, list) and len(fields) == 2 for fields in first_two):
        return False
    ids = {fields[0] for fields in first_two}
    return len(ids) == 2 and len({re.sub(r"\d+", "0", id_) for id_ in ids}) == 1


def read_query_tsv(
    path: Path, lines: Iterable[Line], limit: int = MAX_LINE, columns: Columns | None = None
) -> Records:
    """Read `id TAB text` lines; a first line such as `qid TAB query` is a header if both names are known.

    If `columns` has custom names, a first line that holds them is a header, too.
    """
    rows = tsv_rows(lines, limit)
    for number, raw, fields in rows:
        names = [field.strip().lower() for field in fields] if isinstance(fields, list) else []
        text = next((n for n in names[1:] if n in QUERY_TEXTS), None)
        exact = [field.strip() for field in fields] if isinstance(fields, list) else []
        if columns and columns.to_remember() and columns.text in exact:
            yield from _records(path, rows, exact, columns_in(path, exact, columns))
        elif names and names[0] in QUERY_IDS and text:
            yield from _records(path, rows, names, Columns(names[0], text))
        else:
            lines_of = map(_with_tab, chain([(number, raw, fields)], rows))
            yield from _records(path, lines_of, HEADLESS, Columns())


def _with_tab(row: Row) -> Row:
    """Return a row of a file of queries without a header. If the line has no tab, its fields become an error."""
    number, raw, fields = row
    if isinstance(fields, list) and len(fields) == 1:
        reason = wrong_width(1, HEADLESS)
        fields = Reason(f"{reason}: begin each line with an id and a tab", reason.cause, **reason.facts)
    return number, raw, fields


def documents(path: Path, rows: Iterator[Row], columns: Columns) -> Records:
    """Make a document from each row below the one that names the columns. Raises InputError as `read_csv` does."""
    for number, _, fields in rows:
        if number < (columns.header_row or 1):
            continue
        if isinstance(fields, str):
            raise InputError(f"{path}:{number}: cannot read the header: {fields}")
        header = unique_names(fields)
        yield from _records(path, rows, header, columns_in(path, header, columns))


def unique_names(header: Sequence[str | None]) -> list[str]:
    """Return the columns' names: "text" twice gives text_1 and text_2, an unnamed third one column_3."""
    names = [(name or "").strip() or f"column_{number}" for number, name in enumerate(header, start=1)]
    count, used = Counter(names), set(names)
    number = Counter[str]()
    for position, name in enumerate(names):
        while count[name] > 1:
            number[name] += 1
            if (numbered := f"{name}_{number[name]}") not in used:
                names[position] = numbered
                used.add(numbered)
                break
    return names


def columns_in(path: Path, header: Sequence[str], columns: Columns) -> Columns:
    """Return the columns by their names in the header.

    If the header has none of the usual names for a column, but exactly one name is typical of such columns, the
    column has that name. Raises InputError if the header lacks a column.
    """
    found: dict[str, Any] = {}
    known: dict[Role, Sequence[str]] = {"id": columns.ids, "text": columns.texts, "title": ("title",)}
    for role, names in known.items():
        free = columns.usual or getattr(columns, role) == getattr(Columns(), role)
        if free and names and not set(names) & set(header) and (name := likely(header, role)):
            found[role] = name
    columns = dataclasses.replace(columns, **found)
    titles = (columns.title,) if columns.title and not columns.usual else ()
    for names in (columns.ids, columns.texts, titles):
        if names and not set(names) & set(header):
            raise InputError(
                f"{path}: no column {' or '.join(names)}: the header has {', '.join(header)}; "
                "rename one in the file; or name the right ones (`id_column`, `text_column`, `title_column`)"
                + ("; or have ids made (`make_ids`)" if names == columns.ids else "")
                + "; if these are not names, say which row has them (`header_row`)"
                + (", or which sheet (`sheet`)" if path.suffix.lower() == ".xlsx" else "")
            )
    return columns


def _records(path: Path, rows: Iterable[Row], header: Sequence[str], columns: Columns) -> Records:
    ids = ContentIds()
    for number, raw, fields in rows:
        try:
            if isinstance(fields, str):
                raise UnusableError(fields)
            if len(fields) != len(header):
                raise UnusableError(wrong_width(len(fields), header))
            id_ = None if columns.ids else ids.make(fields)
            yield number, make_document(dict(zip(header, fields, strict=True)), columns, id_)
        except UnusableError as e:
            yield number, BadLine.of(path, number, reason_of(e), raw)


def tsv_rows(lines: Iterable[Line], limit: int = MAX_LINE) -> Iterator[Row]:
    """Yield the rows of tab-separated lines without quoting."""
    for number, raw, size in lines:
        if size > len(raw):
            yield number, raw, too_long(size, limit)
        elif not is_utf8(raw):
            yield number, raw, NOT_UTF8
        elif raw.strip():
            yield number, raw, raw.removesuffix(b"\r").decode().split("\t")


def csv_rows(
    lines: Iterable[Line], limit: int = MAX_LINE, delimiter: str | None = None, header_row: int | None = None
) -> Iterator[Row]:
    """Yield the rows of CSV; if no `delimiter` is given, the first lines from `header_row` on suggest one."""
    lines, first = _with_head(lines)
    delimiter = delimiter or guess_delimiter(first, header_row)
    if first and SEPARATOR.fullmatch(first[0]):
        next(lines)
    # The setting is process-wide, so it is only ever raised; `_Tape` enforces this file's limit.
    csv.field_size_limit(max(csv.field_size_limit(), limit))
    tape = _Tape(lines, limit)
    reader = csv.reader(tape, strict=True, delimiter=delimiter)
    while True:
        tape.begin()
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as e:
            # The csv module's message about line ends names a "new-line character"; all others concern quotation marks.
            reason = reason_of(e)
            is_known = reason.cause or "new-line" in reason
            yield *tape.put_back(), reason if is_known else Reason(reason, "quotation-mark")
            continue
        raw = b"\n".join(line for _, line, _ in tape.record)
        if not is_utf8(raw):
            yield tape.record[0][0], raw, NOT_UTF8
        elif any(field.strip() for field in fields):  # a spreadsheet's empty row becomes ";;;"
            yield tape.record[0][0], raw, fields
    if tape.damage:
        raise tape.damage


def _with_head(lines: Iterable[Line]) -> tuple[Iterator[Line], list[str]]:
    """Return all lines, and the first ones as text; damage is left to the reader of the lines."""
    lines, first, size = iter(lines), list[Line](), 0
    damage: DamagedInputError | None = None
    try:
        while len(first) < SAMPLE and size < SAMPLE_BYTES and (line := next(lines, None)):
            first.append(line)
            size += len(line[1])
    except DamagedInputError as e:
        damage = e
    return _replay(first, lines, damage), [raw.decode(errors="replace") for _, raw, _ in first]


def _replay(first: list[Line], rest: Iterator[Line], damage: DamagedInputError | None) -> Iterator[Line]:
    yield from first
    if damage:
        raise damage
    yield from rest


class _Tape:
    """Lines for csv.reader; it keeps the lines of the current record, so that they can be read again."""

    def __init__(self, lines: Iterable[Line], limit: int) -> None:
        self._lines, self._limit, self._size = iter(lines), limit, 0
        self._returned: deque[Line] = deque()
        self.record: list[Line] = []
        self._max_lines = MAX_RECORD_LINES
        self.damage: DamagedInputError | None = None

    def begin(self) -> None:
        """Begin a record."""
        self.record, self._size = [], 0
        self._max_lines = MAX_REREAD_LINES if self._returned else MAX_RECORD_LINES

    def put_back(self) -> tuple[int, bytes]:
        """Put back all lines of the record except the first; return the first one's number and bytes."""
        (number, raw, _), *others = self.record
        self._returned.extendleft(reversed(others))
        return number, raw

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self._returned.popleft() if self._returned else next(self._lines)
        except DamagedInputError as e:  # reported after the lines read so far
            self.damage = e
            raise StopIteration from None
        self.record.append(line)
        self._size += line[2] + (len(self.record) > 1)
        if self._size > self._limit:
            raise csv.Error(too_long(self._size, self._limit))
        if len(self.record) > self._max_lines:
            raise csv.Error(f"a quote that does not close within {self._max_lines:,} lines")
        return line[1].decode(errors="surrogateescape") + "\n"
