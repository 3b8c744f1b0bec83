"""Read corpora and queries: JSONL, BEIR folders, CSV, TSV, XLSX, RIS, NBIB, ASReview projects, folders of text files.

A record that cannot be used becomes a `BadLine` in its place: nothing is dropped silently, and the same files always
give the same records. All formats except XLSX and ASReview projects may be gzipped. A record has at most 16 MiB.
"""

import contextlib
import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import orjson

from indexes.errors import Reason, reason_of
from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.files import STDIO
from linker.base.lines import MAX_LINE, DamagedInputError, Line, read_lines
from linker.base.printable import json_kind
from linker.corpora import asreview, datasets
from linker.corpora.dialects import (
    Kind,
    UnknownEncodingError,
    check_encoding,
    guess_encoding,
    kind_of,
    real_kind,
)
from linker.corpora.guessing import or_guessed
from linker.corpora.records import (
    NOT_UTF8,
    BadLine,
    Columns,
    ContentIds,
    Record,
    Records,
    UnusableError,
    is_utf8,
    make_document,
    report_skipped,
    too_long,
    without_repeats,
)
from linker.corpora.references import read_references
from linker.corpora.tables import read_csv, read_query_tsv, read_tsv
from linker.corpora.workbooks import read_xlsx

READABLE = "*.jsonl, *.csv, *.tsv, *.ris, *.nbib or *.txt, each also as .gz, or *.xlsx or *.asreview"


@dataclass(frozen=True, slots=True)
class Query:
    """A text to search with; if it comes from a document, its title and text."""

    id: str
    text: str


def read_corpus(path: Path, columns: Columns | None = None, *, limit: int = MAX_LINE) -> Iterator[Record]:
    """Yield the documents of a file or folder, and a BadLine in place of each unusable record.

    - JSON lines: one object per line; `Columns` names the fields, all others become metadata.
    - CSV (quoted) and TSV (never quoted) with a header; encoding and delimiter are guessed if `columns` names none.
    - XLSX: the sheet that `columns` names, or the first one with records, with a header.
    - If no column has a usual name, columns are guessed from the content.
    - RIS and NBIB: the abstract is the text; a record without an id is identified by its DOI or else its content.
    - An ASReview project: its dataset; a record without an id is identified by its number, ASReview's record_id.
    - A text file is one document; its id is the path inside the folder without .txt, with white space and %
      percent-encoded ("My page.txt" becomes My%20page), so that urllib.parse.unquote restores the name.
    - A folder with corpus.jsonl is read as BEIR; in any other, all files, which must be of one kind, are read in
      order, including subfolders (but not hidden files, queries.* and qrels/).
    - `ir_datasets:ID` names a data set of that package, if it is on this disk.

    Raises InputError, which names the remedy, if there is nothing to read.
    """
    return (record for _, record in read_lines_of(path, columns, limit))


def read_lines_of(path: Path, columns: Columns | None, limit: int = MAX_LINE) -> Records:
    """Yield the records of `read_corpus`, each with the number of its line or row. Raises the same InputErrors."""
    records = numbered_records(path, columns or Columns(), limit)
    with _readable(path):
        first = next(records, None)
    if first is None:
        raise InputError(Reason(f"{path} is empty: it holds no records", "empty-file", name=path.name))
    yield first
    yield from records


def read_queries(path: Path, columns: Columns | None = None, *, limit: int = MAX_LINE) -> list[Query]:
    """Read queries: any source for `read_corpus`, queries.jsonl of a BEIR folder, or lines `id TAB text`.

    A TSV file has a header if `columns` names a column that is in its first line.

    A query whose id an earlier one has is left out, and the log says so. Raises InputError naming file and line of
    the first unusable query: leaving one out would bias an evaluation.
    """
    queries, bad = usable_queries(path, columns, limit)
    for record in bad:
        if getattr(record.reason, "cause", "") != "repeated-id":
            place = f"{record.path}:{record.line}"
            raise InputError(f"{place}: {record.reason}; correct or remove this query, since all count")
    report_skipped(bad)
    return queries


def usable_queries(
    path: Path, columns: Columns | None = None, limit: int = MAX_LINE
) -> tuple[list[Query], list[BadLine]]:
    """Return the queries as `read_queries` does, and the unusable and repeated ones. Raises InputError without any."""
    with _readable(path):
        records = list(without_repeats(path, _read_query_records(path, columns or Columns(), limit)))
    if not records:
        raise InputError(f"{path} is empty: it holds no queries")
    bad = [record for record in records if isinstance(record, BadLine)]
    return [Query(r.id, r.full_text) for r in records if isinstance(r, Document)], bad


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise InputError(f"cannot read {e.filename or path}: {e.strerror}") from e


def _read_query_records(path: Path, columns: Columns, limit: int) -> Records:
    if datasets.is_name(path):
        return datasets.queries(path)
    inside = _first_file(path, "queries.jsonl") if path.is_dir() else None
    if path.is_dir() and not inside:
        return numbered_records(path, columns, limit)
    file = inside or path
    kind, lines = recognise(file, columns, limit, otherwise="tsv")
    if kind in ("tsv", "text"):
        return _until_damage(read_query_tsv(file, lines, limit, columns))
    return _read_file(file, kind, lines, columns, limit, file.name)


def numbered_records(path: Path, columns: Columns, limit: int = MAX_LINE) -> Records:
    """Yield the records of a file or folder, none if it is empty, each with the number of its line or row."""
    if datasets.is_name(path):
        yield from datasets.documents(path)
        return
    if corpus := _first_file(path, "corpus.jsonl"):
        path = corpus
    if not path.is_dir():
        kind, lines = recognise(path, columns, limit)
        yield from _read_file(path, kind, lines, columns, limit, path.name)
        return
    kinds = {kind: file for file, kind in _walk(path)}
    if not kinds:
        raise InputError(f"nothing to read in the folder {path}: expected {READABLE}")
    if len(kinds) > 1:
        examples = ", ".join(sorted(str(file.relative_to(path)) for file in kinds.values()))
        raise InputError(f"the folder {path} mixes kinds of files ({examples}): give the files one by one")
    for file, kind in _walk(path):
        name, real = file.relative_to(path).as_posix(), real_kind(file, kind)
        yield from _read_file(file, real, _lines(file, real, columns, limit), columns, limit, name)


def _first_file(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)


def _walk(folder: Path) -> Iterator[tuple[Path, Kind]]:
    """Yield the readable files below a folder, always in the same order."""

    def refuse(error: OSError) -> NoReturn:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error

    for where, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "qrels")
        for name in sorted(files):
            kind = kind_of(name)
            beir = kind in ("jsonl", "tsv") and name.startswith("queries.")
            if kind and not beir and not name.startswith((".", "~$")):  # ~$: Excel's locks
                yield _regular(Path(where, name)), kind


def _regular(file: Path) -> Path:
    """Return a file of a folder. Raises InputError for a pipe or device, which could keep a build waiting."""
    if stat.S_ISREG(file.stat().st_mode):
        return file
    raise InputError(f"{file} is not a regular file: remove it from the folder, or save its data to a file")


def _lines(path: Path, kind: Kind | None, columns: Columns, limit: int) -> Iterator[Line]:
    """Return a file's lines in UTF-8; the encoding of JSON is never guessed, since JSON is always UTF-8."""
    if columns.encoding:
        return read_lines(path, limit, check_encoding(columns.encoding))
    guessed = None
    if kind in ("csv", "tsv", "references", "text") and path.is_file():
        try:
            guessed = guess_encoding(path)
        except UnknownEncodingError:
            if kind != "text":  # a text goes to the quarantine by itself
                raise
    return read_lines(path, limit, guessed)


def check_exists(path: Path) -> None:
    """Raise InputError unless `path` names a file or folder, a data set or stdin."""
    if not (path.exists() or path == STDIO or datasets.is_name(path)):
        raise InputError(f"no such file or folder: {path}")


def recognise(
    path: Path, columns: Columns, limit: int, otherwise: Kind | None = None
) -> tuple[Kind, Iterator[Line]]:
    """Return a file's kind, by its name or, if that is not informative (a pipe), by its first line; and its lines."""
    check_exists(path)
    empty = InputError(Reason(f"{path} is empty", "empty-file", name=path.name))
    if path.is_file() and not path.stat().st_size:
        raise empty
    if kind := kind_of(path.name):
        kind = real_kind(path, kind)
    lines = _lines(path, kind, columns, limit)
    if kind:
        return kind, lines
    try:
        start = list(itertools.islice(lines, 1))
    except DamagedInputError as e:
        raise InputError(str(e)) from None
    if not start:
        raise empty
    guess = "jsonl" if start[0][1].lstrip().startswith(b"{") else otherwise
    if not guess:
        raise InputError(f"cannot tell what {path} holds: rename it to {READABLE}")
    return guess, itertools.chain(start, lines)


def _read_file(
    path: Path, kind: Kind, lines: Iterable[Line], columns: Columns, limit: int, name: str
) -> Records:
    if kind == "text":
        return _until_damage(_read_text(path, lines, limit, name))
    if kind == "references":
        return _until_damage(read_references(path, lines, columns, limit))
    if kind == "asreview":
        return asreview.read_project(path, columns, lambda inner, how: numbered_records(inner, how, limit))

    def read(how: Columns) -> Records:
        if kind == "xlsx":
            return read_xlsx(path, how, limit)
        given = lines if how is columns else _lines(path, kind, how, limit)
        readers = {"jsonl": read_jsonl, "csv": read_csv, "tsv": read_tsv}
        return _until_damage(readers[kind](path, given, how, limit))

    return or_guessed(path, columns, read)


def _until_damage(records: Records) -> Records:
    """Yield the records; damage to a compressed file becomes the last record."""
    try:
        yield from records
    except DamagedInputError as e:
        yield e.line, BadLine.of(e.path, e.line, e.reason, e.raw)


def read_jsonl(path: Path, lines: Iterable[Line], columns: Columns, limit: int = MAX_LINE) -> Records:
    """Yield the records of JSON lines, each with its line number, unusable ones as BadLines that name `path`."""
    first, ids = True, None if columns.ids else ContentIds()
    for number, raw, size in lines:
        if not raw or raw.isspace():
            continue
        if first:
            _refuse_one_value(path, raw)
            first = False
        try:
            if size > len(raw):
                raise UnusableError(too_long(size, limit))
            fields = _object(raw)
            yield number, make_document(fields, columns, ids.make(fields) if ids else None)
        except UnusableError as e:
            yield number, BadLine.of(path, number, reason_of(e), raw, size)


def _object(raw: bytes) -> dict[str, object]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as e:
        raise UnusableError(Reason(f"not JSON: {e}", "not-json") if is_utf8(raw) else NOT_UTF8) from None
    if isinstance(value, dict):
        return value
    remedy = " (a single array? convert it to lines: jq -c '.[]')" if isinstance(value, list) else ""
    raise UnusableError(Reason(f"a JSON {json_kind(value)}, not an object{remedy}", "not-json"))


def _refuse_one_value(path: Path, raw: bytes) -> None:
    """Raise InputError for a file that is one JSON value over many lines: all its lines would be bad."""
    start = raw.strip()
    if start == b"{":
        raise InputError(f"{path} is not JSON lines: its objects span lines; put each on one: jq -c . FILE")
    if start.startswith(b"[") and start.count(b"[") > start.count(b"]"):
        raise InputError(
            f"{path} is one JSON array, not JSON lines; put each element on a line: jq -c '.[]' FILE"
        )


def _read_text(path: Path, lines: Iterable[Line], limit: int, name: str) -> Records:
    content, size = bytearray(), 0
    for number, raw, length in lines:
        content += (b"\n" if number > 1 else b"") + raw if len(content) <= limit else b""
        size += length + (number > 1)
    try:
        if size > limit or not is_utf8(bytes(content)):
            raise UnusableError(too_long(size, limit) if size > limit else NOT_UTF8)
        yield 1, make_document({"id": _name_to_id(name), "text": content.decode()}, Columns())
    except UnusableError as e:
        yield 1, BadLine.of(path, 1, reason_of(e), bytes(content), size)


def _name_to_id(name: str) -> str:
    stem = name.removesuffix(".gz").removesuffix(".txt")
    return "".join(
        c if c.isprintable() and c not in " %" else quote(c, errors="surrogateescape") for c in stem
    )
