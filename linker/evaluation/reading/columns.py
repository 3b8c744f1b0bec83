"""Split a text file into columns with numpy, one block of lines at a time."""

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexes.dtypes import Int64Array
from linker.base.errors import InputError
from linker.base.files import open_input
from linker.base.terminal import quantity
from linker.evaluation.reading.entries import RowSource
from linker.evaluation.reading.fields import PAD, Bytes, Fields, padded

PathLike = str | os.PathLike[str]

_BLOCK = 1 << 21  # bytes parsed at a time, so that the arrays stay in the processor's cache
_SPACE = np.zeros(256, np.bool_)
_SPACE[[9, 10, 11, 12, 13, 32]] = True
_TAB, _NEWLINE, _BLANK = 9, 10, 32


def load(path: PathLike) -> Bytes:
    """Return a file's text, uint8 [n], with a final newline, no byte order mark, and `PAD` zero bytes on either side.

    A file named *.gz is decompressed. Raises InputError if the file cannot be read, is empty or contains a NUL.
    """
    try:
        if str(path).endswith(".gz"):
            with open_input(Path(path)) as raw, gzip.open(raw) as packed:
                text = packed.read()
        else:
            return _checked(_load_plain(path), path)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return loaded(text, path)


def loaded(text: bytes, path: PathLike) -> Bytes:
    """Return `text`, the contents of `path`, as `load` would, with the same errors."""
    return _checked(padded(text if text.endswith(b"\n") else text + b"\n"), path)


def _load_plain(path: PathLike) -> Bytes:
    """Return the text of an uncompressed file without copying it."""
    with open_input(Path(path)) as file:
        size = os.fstat(file.fileno()).st_size
        buffer = np.zeros(size + 2 * PAD + 1, np.uint8)
        read = file.readinto(buffer.data[PAD : PAD + size])
        rest = file.read()  # the content of a pipe, which has no size, or of a file that has grown
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
        if text[:4].tobytes() == b"PK\x03\x04":
            raise InputError(
                f"{path} is a ZIP archive, such as a spreadsheet, not text: save its rows as a text file"
            )
        if text[:2].tobytes() in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise InputError(f"{path} is UTF-16: save it as UTF-8")
        raise InputError(f"{path}:{line}: the line contains a NUL byte; is this a text file?")
    mark = len(codecs.BOM_UTF8)
    if text[:mark].tobytes() == codecs.BOM_UTF8:
        text[:mark] = 0
        return buffer[mark:]
    return buffer


@dataclass(frozen=True, slots=True)
class Block:
    """Lines split into columns: offsets of the separators `before` and `after` each field, int64 [rows, columns].

    Offsets count from `base` in `buffer`; `line`: the line number of the first row, or of each row, int64 [rows].
    """

    buffer: Bytes
    base: int
    before: Int64Array
    after: Int64Array
    line: int | Int64Array

    def column(self, number: int, rows: slice = slice(None)) -> Fields:
        """Return the fields of one column, in all `rows` or some."""
        before = self.before[rows, number] + 1
        return Fields(self.buffer, before + self.base, self.after[rows, number] - before)

    def place(self, row: int, path: str) -> str:
        """Return "file:line" of a row."""
        return RowSource(path, ((0, self.line),)).place(row)


def lines(
    buffer: Bytes, path: str, columns: int, most: int | None, wanted: str, begin: int = PAD, line: int = 1
) -> Iterator[Block]:
    """Yield the text from offset `begin`, where `line` starts, as blocks of rows of `columns` columns.

    `buffer`: uint8 [n], as `load` returns it. A line may have up to `most` columns (None: any number); the ones after
    `columns` are dropped. Raises InputError, which names a line with the wrong number of columns and, from `wanted`,
    the expected columns.
    """
    end = len(buffer) - PAD
    while begin < end:
        stop = line_end(buffer, min(begin + _BLOCK, end))
        text = buffer[begin - 1 : stop]  # begins with the preceding newline or a zero byte
        newlines = int(np.count_nonzero(text[1:] == _NEWLINE))
        cut = _regular(text, newlines, columns, line)
        yield Block(buffer, begin - 1, *(cut or _irregular(text, (columns, most, wanted), path, line)))
        line += newlines
        begin = stop


def line_count(buffer: Bytes) -> int:
    """Return the number of lines in `buffer`, uint8 [n]."""
    parts = range(0, len(buffer), _BLOCK)  # in parts, so that the flags stay in the cache
    return sum(int(np.count_nonzero(buffer[i : i + _BLOCK] == _NEWLINE)) for i in parts)


def line_end(buffer: Bytes, stop: int) -> int:
    """Return the offset in `buffer`, uint8 [n], after the first newline at or after `stop` − 1."""
    while buffer[stop - 1] != _NEWLINE:
        newlines = np.flatnonzero(buffer[stop : stop + 4096] == _NEWLINE)
        stop = min(stop + (int(newlines[0]) + 1 if len(newlines) else 4096), len(buffer) - PAD)
    return stop


def _regular(
    text: Bytes, newlines: int, columns: int, line: int
) -> tuple[Int64Array, Int64Array, int] | None:
    """Split lines of exactly `columns` columns, separated by one blank or tab; return None if any line differs."""
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
    """Split lines with any white space and skip blank ones. Raises InputError if the number of columns is wrong."""
    columns, most, wanted = rule
    edges = np.concatenate(([0], np.flatnonzero(_SPACE[text[1:]]) + 1))
    line = np.concatenate(([0], np.cumsum(text[edges[1:-1]] == _NEWLINE)))
    word = np.diff(edges) > 1
    count = np.bincount(line[word], minlength=int(line[-1]) + 1)
    wrong = (count > 0) & ((count < columns) | (count > (most or np.inf)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{path}:{first + at}: {quantity(count[at], 'column')}; expected: {wanted}")
    start = (np.cumsum(count) - count)[count > 0]
    cells = start[:, None] + np.arange(columns)
    return edges[:-1][word][cells], edges[1:][word][cells], np.flatnonzero(count > 0) + first
