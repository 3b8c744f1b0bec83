r"""Interlanguage links from MediaWiki's table `langlinks`, as mysqldump writes it (langlinks.sql.gz), as a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from linker.base.errors import InputError
from linker.papers.bucc.compressed import REMEDY, reading

COLUMNS = ("ll_from", "ll_lang", "ll_title")
LONGEST = 1 << 16  # maximum bytes of a row or a statement's head; a title has at most 255
_STRING = rb"(?:_binary\s+)?'([^'\\]*(?:(?:\\.|'')[^'\\]*)*)'"
_ROW = re.compile(rb"\s*\(\s*(\d+)\s*,\s*" + _STRING + rb"\s*,\s*" + _STRING + rb"\s*\)\s*([,;])", re.DOTALL)
_TABLE = re.compile(rb"CREATE TABLE[^(`]*`langlinks`\s*\((.*?)\)\s*ENGINE", re.DOTALL)
_COLUMN = re.compile(rb"^\s*`(\w+)`", re.MULTILINE)
_INSERT = re.compile(
    rb"(?:INSERT|REPLACE)(?:\s+IGNORE)?\s+INTO\s+`langlinks`\s*(?:\(([^)]*)\)\s*)?VALUES", re.IGNORECASE
)
_HEADS = re.compile(_INSERT.pattern + rb"|" + _TABLE.pattern, re.DOTALL | re.IGNORECASE)
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_ESCAPED = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}

Row = tuple[int, str, str]


def read_langlinks(path: Path, code: str | None = None) -> Iterator[Row]:
    """Yield (page id, language, title) of the links to the language `code`, or of all; memory stays near 1 MiB.

    Raises InputError if the file cannot be read, is damaged or truncated, or does not hold the table `langlinks`.
    """
    wanted = code.encode() if code else None
    for number, language, title in _rows(path, wanted):
        yield int(number), _text(language), _text(title)


def _rows(path: Path, wanted: bytes | None) -> Iterator[tuple[bytes, ...]]:
    """Yield the raw values of the rows of a language. After a statement, the head of the next one is searched for."""
    buffer, inside, seen = b"", False, False
    with reading(path) as blocks:
        for block in blocks:
            buffer += block
            position = 0
            while True:
                if not inside:
                    if not (head := _HEADS.search(buffer, position)):
                        # The end of the buffer may be the beginning of a head.
                        position = max(position, len(buffer) - LONGEST)
                        break
                    _check_columns(path, head)
                    position = head.end()
                    seen = True
                    inside = head[0][:6].upper() != b"CREATE"
                elif row := _ROW.match(buffer, position):
                    if wanted is None or row[2] == wanted:
                        yield row.group(1, 2, 3)
                    position, inside = row.end(), row[4] == b","
                else:
                    break
            buffer = buffer[position:]
            if inside and len(buffer) > LONGEST + len(block):
                raise _damaged(path, buffer)
    if inside:
        raise _damaged(path, buffer)
    if not seen:
        raise InputError(f"{path} does not hold the table langlinks: pass WIKI-DATE-langlinks.sql.gz")


def _damaged(path: Path, rest: bytes) -> InputError:
    start = rest[:40].decode(errors="backslashreplace")
    return InputError(
        f"{path} is damaged or cut: expected a row (id, 'language', 'title') at {start!r}: {REMEDY}"
    )


def _check_columns(path: Path, head: re.Match[bytes]) -> None:
    """Raise InputError if a statement names other columns, or in another order."""
    names = _COLUMN.findall(head[2]) if head[2] else re.findall(rb"\w+", head[1] or b"")
    columns = tuple(name.decode() for name in names)
    if columns and columns != COLUMNS:
        raise InputError(
            f"{path}: the table langlinks has the columns {', '.join(columns)}; expected {COLUMNS}"
        )


def _text(value: bytes) -> str:
    if b"\\" in value or b"''" in value:
        value = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]) if m[1] else b"'", value)
    return value.decode(errors="replace")
