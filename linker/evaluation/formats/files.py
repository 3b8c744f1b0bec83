"""Recognise the format of judgements or a run by the file's first bytes, and read it."""

from __future__ import annotations

import dataclasses
import gzip
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from linker.base.errors import InputError
from linker.base.files import STDIO, open_input, read_bytes
from linker.evaluation.formats import nested, parquet
from linker.evaluation.reading.columns import loaded
from linker.evaluation.reading.entries import Entries, RowSource
from linker.evaluation.reading.sources import as_qrels, as_run
from linker.evaluation.reading.trec import qrels_of, read_qrels, read_run, run_of

Kind = Literal["trec", "json", "parquet"]
GZIP, BOM, HEAD = b"\x1f\x8b", b"\xef\xbb\xbf", 256


def read_run_file(path: Path) -> Entries[float]:
    """Return the run in a file of any of the formats; `-` is stdin.

    Raises InputError if it cannot be read or is malformed, MissingExtraError for Parquet without its extra.
    """
    data = _whole(path)
    kind = _kind(_head(path) if data is None else data)
    if kind == "trec":
        return read_run(path) if data is None else run_of(loaded(data, path), str(path))
    return _built(path, as_run, kind, _unpacked(path) if data is None else data)


def read_qrels_file(path: Path, warn: Callable[[str], None] | None = None) -> Entries[int]:
    """Return the judgements in a file of any of the formats; `-` is stdin. Raises the same errors as `read_run_file`.

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
        value = parquet.frame(data) if kind == "parquet" else nested.read(data)
        entries = build(value)
    except InputError as e:
        raise InputError(f"{path}: {e}") from e
    name = "run" if path == STDIO else Path(path.name.removesuffix(".gz")).stem
    return dataclasses.replace(entries, source=RowSource(str(path)), name=name)


def _kind(head: bytes) -> Kind:
    start = head.removeprefix(BOM).lstrip()
    if start.startswith(parquet.MAGIC):
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
