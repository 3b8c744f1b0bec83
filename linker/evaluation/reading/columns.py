"""A text file cut into columns by numpy, a block of lines at a time; wrong column counts name their line."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexes.dtypes import Int64Array
from linker.errors import InputError
from linker.evaluation.reading.entries import Source
from linker.evaluation.reading.fields import PAD, Bytes, Fields, padded
from linker.files import open_input

PathLike = str | os.PathLike[str]

_BLOCK = 1 << 21  # bytes parsed at once: its arrays stay in the processor's cache
_SPACE = np.zeros(256, np.bool_)
_SPACE[[9, 10, 11, 12, 13, 32]] = True
_TAB, _NEWLINE, _BLANK = 9, 10, 32


def load(path: PathLike) -> Bytes:
    """Return a file's text, ending in a newline, without a byte order mark, and `PAD` zero bytes either side."""
    try:
        if str(path).endswith(".gz"):
            with open_input(Path(path)) as raw, gzip.open(raw) as packed:
                text = packed.read()
        else:
            return _checked(_load_plain(path), path)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return _checked(padded(text if text.endswith(b"\n") else text + b"\n"), path)


def _load_plain(path: PathLike) -> Bytes:
    """Read without a second copy of the text."""
    with open_input(Path(path)) as file:
        size = os.fstat(file.fileno()).st_size
        buffer = np.zeros(size + 2 * PAD + 1, np.uint8)
        read = file.readinto(buffer.data[PAD : PAD + size])
        rest = file.read()  # a pipe has no size; a growing file has more
    if rest or read != size:
        text = buffer[PAD : PAD + read].tobytes() + rest
        return padded(text if text.endswith(b"\n") else text + b"\n")
    if buffer[PAD + size - 1] != _NEWLINE:
        buffer[PAD + size] = _NEWLINE
        return buffer
    return buffer[:-1]


def _checked(buffer: Bytes, path: PathLike) -> Bytes:
    text = buffer[PAD:-PAD]
    parts = [text[i : i + _BLOCK] for i in range(0, len(text), _BLOCK)]
    if all(part.max() <= _BLANK for part in parts):
        raise InputError(f"{path}: the file is empty")
    if not all(part.min() for part in parts):
        line = int(np.count_nonzero(text[: int(np.argmin(text))] == _NEWLINE)) + 1
        raise InputError(f"{path}:{line}: the line holds a NUL byte; is this a text file?")
    mark = len(codecs.BOM_UTF8)
    if text[:mark].tobytes() == codecs.BOM_UTF8:
        text[:mark] = 0
        return buffer[mark:]
    return buffer


@dataclass(frozen=True, slots=True)
class Block:
    """Lines cut into columns: where the separators `before` and `after` each field are, int64 [rows, columns].

    They count from `base` in the buffer; `line` as in `Source`.
    """

    buffer: Bytes
    base: int
    before: Int64Array
    after: Int64Array
    line: int | Int64Array

    def column(self, number: int, rows: slice = slice(None)) -> Fields:
        """Return one column's fields, of all rows or some."""
        before = self.before[rows, number] + 1
        return Fields(self.buffer, before + self.base, self.after[rows, number] - before)

    def place(self, row: int, path: str) -> str:
        """Name the file and line of a row."""
        return Source(path, ((0, self.line),)).place(row)


def lines(
    buffer: Bytes, path: str, columns: int, most: int | None, wanted: str, begin: int = PAD, line: int = 1
) -> Iterator[Block]:
    """Cut the text from offset `begin`, where `line` starts, into blocks of rows of `columns` columns."""
    end = len(buffer) - PAD
    while begin < end:
        stop = line_end(buffer, min(begin + _BLOCK, end))
        text = buffer[begin - 1 : stop]  # from the newline before, or a zero byte
        newlines = int(np.count_nonzero(text[1:] == _NEWLINE))
        cut = _regular(text, newlines, columns, line)
        yield Block(buffer, begin - 1, *(cut or _irregular(text, (columns, most, wanted), path, line)))
        line += newlines
        begin = stop


def line_count(buffer: Bytes) -> int:
    """Return the number of lines."""
    parts = range(0, len(buffer), _BLOCK)  # so that the flags stay in the cache
    return sum(int(np.count_nonzero(buffer[i : i + _BLOCK] == _NEWLINE)) for i in parts)


def line_end(buffer: Bytes, stop: int) -> int:
    """Return the offset after the first newline at or after `stop` − 1."""
    while buffer[stop - 1] != _NEWLINE:
        found = np.flatnonzero(buffer[stop : stop + 4096] == _NEWLINE)
        stop = min(stop + (int(found[0]) + 1 if len(found) else 4096), len(buffer) - PAD)
    return stop


def _regular(
    text: Bytes, newlines: int, columns: int, line: int
) -> tuple[Int64Array, Int64Array, int] | None:
    """Cut lines that all hold exactly `columns` columns with one blank or tab between; None if they do not."""
    edge = text <= _BLANK
    edges = np.flatnonzero(edge)
    gaps = np.count_nonzero(text[1:] == _BLANK)
    if gaps != newlines * (columns - 1):
        gaps += np.count_nonzero(text[1:] == _TAB)
    if (
        len(edges) != newlines * columns + 1
        or gaps != newlines * (columns - 1)
        or (edge[1:] & edge[:-1]).any()
    ):
        return None
    before, after = edges[:-1].reshape(-1, columns), edges[1:].reshape(-1, columns)
    return (before, after, line) if (text[after[:, -1]] == _NEWLINE).all() else None


def _irregular(
    text: Bytes, rule: tuple[int, int | None, str], path: str, first: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Cut any lines; blank ones are passed over. Raises InputError where the column count is wrong."""
    columns, most, wanted = rule
    edges = np.concatenate(([0], np.flatnonzero(_SPACE[text[1:]]) + 1))
    line = np.concatenate(([0], np.cumsum(text[edges[1:-1]] == _NEWLINE)))
    word = np.diff(edges) > 1
    count = np.bincount(line[word], minlength=int(line[-1]) + 1)
    wrong = (count > 0) & ((count < columns) | (count > (most or np.inf)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{path}:{first + at}: {count[at]} columns; expected: {wanted}")
    start = (np.cumsum(count) - count)[count > 0]
    cells = start[:, None] + np.arange(columns)
    return edges[:-1][word][cells], edges[1:][word][cells], np.flatnonzero(count > 0) + first
