"""A text file cut into columns by numpy, a block of lines at a time; wrong column counts name their line."""

from __future__ import annotations

import codecs
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linker.errors import InputError
from linker.evaluation.entries import Source
from linker.evaluation.fields import PAD, Bytes, Fields, Ints, padded

PathLike = str | os.PathLike[str]

_BLOCK = 1 << 21  # bytes parsed at once: its arrays stay in the processor's cache
_SPACE = np.zeros(256, np.bool_)
_SPACE[[9, 10, 11, 12, 13, 32]] = True
_NEWLINE = 10


def text_begin(buffer: Bytes) -> int:
    """Return the offset of the text, after a byte order mark."""
    return PAD + 3 * (buffer[PAD : PAD + 3].tobytes() == codecs.BOM_UTF8)


def load(path: PathLike) -> Bytes:
    """Return a file's text with `PAD` zero bytes either side, ending in a newline."""
    try:
        if str(path).endswith(".gz"):
            with gzip.open(path, "rb") as packed:
                text = packed.read()
        else:
            return _checked(_load_plain(path), path)
    except (OSError, EOFError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    return _checked(padded(text if text.endswith(b"\n") else text + b"\n"), path)


def _load_plain(path: PathLike) -> Bytes:
    """Read without a second copy of the text."""
    with Path(path).open("rb") as file:
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
    if text.max(initial=0) <= 32:
        raise InputError(f"{path}: the file is empty")
    if not text.min():
        line = int(np.count_nonzero(buffer[: int(np.argmin(buffer[PAD:])) + PAD] == _NEWLINE)) + 1
        raise InputError(f"{path}:{line}: the line holds a NUL byte; is this a text file?")
    return buffer


@dataclass(frozen=True, slots=True)
class Block:
    """Lines cut into columns: `begin` and `end` are int64 [rows, columns]; `line` as in `Source`."""

    buffer: Bytes
    begin: Ints
    end: Ints
    line: int | Ints

    def column(self, number: int) -> Fields:
        """Return one column's fields."""
        begin = np.ascontiguousarray(self.begin[:, number])
        return Fields(self.buffer, begin, self.end[:, number] - begin)

    def place(self, row: int, path: str) -> str:
        """Name the file and line of a row."""
        return Source(path, ((0, self.line),)).place(row)


def lines(
    buffer: Bytes, path: str, columns: int, most: int | None, wanted: str, begin: int, line: int = 1
) -> Iterator[Block]:
    """Cut the text from offset `begin`, where `line` starts, into blocks of rows of `columns` columns."""
    end = len(buffer) - PAD
    while begin < end:
        stop = line_end(buffer, min(begin + _BLOCK, end))
        edges = np.flatnonzero(buffer[begin:stop] <= 32) + begin
        kinds = buffer[edges]
        spaces = _SPACE[kinds]
        if not spaces.all():
            edges, kinds = edges[spaces], kinds[spaces]
        edges = np.concatenate(([begin - 1], edges))
        block = _regular(buffer, edges, kinds, columns, line)
        yield block or _irregular(buffer, edges, kinds, (columns, most, wanted), path, line)
        line += int(np.count_nonzero(kinds == _NEWLINE))
        begin = stop


def line_end(buffer: Bytes, stop: int) -> int:
    """Return the offset after the first newline at or after `stop` − 1."""
    while buffer[stop - 1] != _NEWLINE:
        found = np.flatnonzero(buffer[stop : stop + 4096] == _NEWLINE)
        stop = min(stop + (int(found[0]) + 1 if len(found) else 4096), len(buffer) - PAD)
    return stop


def _regular(buffer: Bytes, edges: Ints, kinds: Bytes, columns: int, line: int) -> Block | None:
    """Cut lines that all hold exactly `columns` columns with one separator between; None if they do not."""
    if len(kinds) % columns or not (np.diff(edges) > 1).all():
        return None
    newline = kinds.reshape(-1, columns) == _NEWLINE
    if not newline[:, -1].all() or np.count_nonzero(newline) != len(newline):
        return None
    return Block(buffer, edges[:-1].reshape(-1, columns) + 1, edges[1:].reshape(-1, columns), line)


def _irregular(
    buffer: Bytes, edges: Ints, kinds: Bytes, rule: tuple[int, int | None, str], path: str, first: int
) -> Block:
    """Cut any lines; blank ones are passed over. Raises InputError where the column count is wrong."""
    columns, most, wanted = rule
    line = np.concatenate(([0], np.cumsum(kinds[:-1] == _NEWLINE)))
    word = np.diff(edges) > 1
    count = np.bincount(line[word], minlength=int(line[-1]) + 1)
    wrong = (count > 0) & ((count < columns) | (count > (most or np.inf)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{path}:{first + at}: {count[at]} columns; expected: {wanted}")
    start = (np.cumsum(count) - count)[count > 0]
    cells = start[:, None] + np.arange(columns)
    begin, end = edges[:-1][word] + 1, edges[1:][word]
    return Block(buffer, begin[cells], end[cells], np.flatnonzero(count > 0) + first)
