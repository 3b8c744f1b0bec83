"""Recognise the format of judgements or a run by the file's first bytes, and read it."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from indexes.errors import importing
from linker.base.errors import InputError
from linker.base.files import STDIO, open_input, read_bytes
from linker.evaluation.reading.columns import loaded
from linker.evaluation.reading.entries import Entries, RowSource
from linker.evaluation.reading.sources import as_qrels, as_run
from linker.evaluation.reading.trec import qrels_of, read_qrels, read_run, run_of

Kind = Literal["trec", "json", "parquet"]
GZIP, BOM, HEAD = b"\x1f\x8b", b"\xef\xbb\xbf", 256
Nested = dict[str, dict[str, Any]]
MAGIC = b"PAR1"


def read_run_file(path: Path) -> Entries[float]:
    """Return the run in a file of any supported format; `-` is stdin. Raises InputError, MissingExtraError."""
    data = _whole(path)
    kind = _kind(_head(path) if data is None else data)
    if kind == "trec":
        return read_run(path) if data is None else run_of(loaded(data, path), str(path))
    return _built(path, as_run, kind, _unpacked(path) if data is None else data)


def read_qrels_file(path: Path, warn: Callable[[str], None] | None = None) -> Entries[int]:
    """Return the judgements in a file of any supported format; `-` is stdin. Raises the errors of `read_run_file`.

    With `warn`, lines of a TREC file that repeat a judgement are dropped with a warning; in JSON and Parquet, a
    repeated judgement is an error.
    """
    data = _whole(path)
    kind = _kind(_head(path) if data is None else data)
    if kind == "trec":
        return read_qrels(path, warn=warn) if data is None else qrels_of(loaded(data, path), str(path), warn)
    return _built(path, as_qrels, kind, _unpacked(path) if data is None else data)


def _built(path: Path, build: Callable[[Any], Entries[Any]], kind: Kind, data: bytes) -> Entries[Any]:
    try:
        value = frame(data) if kind == "parquet" else read_json(data)
        entries = build(value)
    except InputError as e:
        raise InputError(f"{path}: {e}") from e
    name = "run" if path == STDIO else Path(path.name.removesuffix(".gz")).stem
    return dataclasses.replace(entries, source=RowSource(str(path)), name=name)


def _kind(head: bytes) -> Kind:
    start = head.removeprefix(BOM).lstrip()
    if start.startswith(MAGIC):
        return "parquet"
    return "json" if start.startswith((b"{", b"[")) else "trec"


def _whole(path: Path) -> bytes | None:
    """Return the text of stdin or a pipe, which can be read only once; None for a file, or if it cannot be opened."""
    try:
        if path != STDIO and stat.S_ISREG(path.stat().st_mode):
            return None
    except OSError:
        return None
    return _unpacked(path)


def _unpacked(path: Path) -> bytes:
    data = read_bytes(path)
    try:
        return gzip.decompress(data) if data.startswith(GZIP) else data
    except (OSError, EOFError, zlib.error) as e:
        raise InputError(f"cannot read {path}: {e}") from e


def _head(path: Path) -> bytes:
    """Return a file's first bytes, decompressed; empty if it cannot be read, which its reader will report."""
    try:
        with open_input(path) as file:
            if not file.peek(2).startswith(GZIP):
                return file.read(HEAD)
            with gzip.open(file) as packed:
                return packed.read(HEAD)
    except (OSError, EOFError, zlib.error):
        return b""


def read_json(data: bytes) -> Nested:
    """Return topic → document → number from JSON, or from lines as `search --json` prints them. Raises InputError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(f"not UTF-8 text (byte {e.start})") from None
    first, _, rest = text.strip().partition("\n")
    if rest.lstrip().startswith("{") or _is_line(first):
        return _of_lines(text)
    return _checked(_parsed(text))


def _is_line(line: str) -> bool:
    """Return whether a line is the JSON object of one query, as in JSON lines."""
    try:
        value = _parsed(line)
    except InputError:
        return False
    return isinstance(value, dict) and isinstance(value.get("ids"), list)


def _parsed(text: str, where: str = "") -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{where}{twice!r} occurs twice in one object: JSON would keep only the last")
        return value

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as e:
        raise InputError(f"{where}not JSON: {e}") from None


def _checked(value: Any) -> Nested:
    if not isinstance(value, dict):
        raise InputError('not an object {"topic": {"document": number}}, as ranx and pytrec_eval write it')
    for topic, documents in value.items():
        if not isinstance(documents, dict):
            raise InputError(f'topic {topic!r} is not an object {{"document": number}}')
        for id_, number in documents.items():
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise InputError(f"topic {topic!r}, document {id_!r}: {number!r} is not a number")
    return value


def _of_lines(text: str) -> Nested:
    nested: Nested = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        value = _parsed(line, f"line {number}: ")
        query, ids, scores = (
            (value.get(n) for n in ("query", "ids", "scores")) if isinstance(value, dict) else (None,) * 3
        )
        if not (isinstance(query, str) and isinstance(ids, list) and isinstance(scores, list)):
            raise InputError(f"line {number}: expected an object with query, ids and scores")
        if query in nested or len(ids) != len(scores) or len(set(map(str, ids))) != len(ids):
            raise InputError(
                f"line {number}: query {query!r} or one of its ids repeats, or there is not one score per id"
            )
        nested[query] = dict(zip(ids, scores, strict=True))
    return _checked(nested)


class ArrowTable:
    """Wrap an Arrow table so that it has the part of a data frame's interface that `as_run` and `as_qrels` need."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.columns: list[str] = table.column_names

    def __getitem__(self, name: str) -> ArrowTable:
        return ArrowTable(self._table.select([name]))

    def to_list(self) -> list[Any]:
        """Return the values of the only column."""
        return list(self._table.column(0).to_pylist())


def frame(data: bytes) -> ArrowTable:
    """Return the table in a Parquet file. Raises InputError if it is damaged, MissingExtraError."""
    with importing("reading Parquet", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        return ArrowTable(pq.read_table(io.BytesIO(data)))
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"not a Parquet file that can be read: {e}") from e
