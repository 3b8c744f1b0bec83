"""Documents appended to files of JSON lines after these were read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from indexes.interface import Document
from linker.base.lines import BLOCK, GZIP_MAGIC, Splitter
from linker.corpora import BadLine, Columns
from linker.corpora.reading import read_jsonl
from linker.review.watching.rotation import Position, digest, holds

SUFFIXES = (".jsonl", ".ndjson")


class Appended:
    """Files of JSON lines, from their last whole line."""

    def __init__(self, paths: Iterable[Path], columns: Columns | None = None) -> None:
        """Start at the present ends of the files; see `can_read`."""
        self._columns = columns or Columns()
        self._positions = {path: _end(path) for path in paths}

    @staticmethod
    def can_read(path: Path) -> bool:
        """Return whether a path names a file of JSON lines that is not compressed."""
        if path.suffix.lower() not in SUFFIXES or not path.is_file():
            return False
        with path.open("rb") as file:
            return not file.read(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)

    def read(self) -> Sequence[Document] | None:
        """Return the documents of whole lines appended since the last call; None if a file changed in any other way.

        Lines that cannot be read are left to the next reading of the whole file, which reports them.
        """
        found: list[Document] = []
        for path, position in self._positions.items():
            if not holds(path, position):
                return None
            with path.open("rb") as file:
                file.seek(position.offset)
                block = file.read()
                block = block[: block.rfind(b"\n") + 1]
                records = (record for _, record in read_jsonl(path, Splitter().feed(block), self._columns))
                found.extend(record for record in records if not isinstance(record, BadLine))
                self._positions[path] = _at(file, position.offset + len(block))
        return found


def _end(path: Path) -> Position:
    """Return the position after the last whole line of a file."""
    with path.open("rb") as file:
        begin, last = file.seek(0, os.SEEK_END), -1
        while begin and last < 0:
            size = min(BLOCK, begin)
            begin = file.seek(begin - size)
            last = file.read(size).rfind(b"\n")
        return _at(file, begin + last + 1)


def _at(file: BinaryIO, offset: int) -> Position:
    """Return a position in an open file; its lines are not counted."""
    descriptor = file.fileno()
    return Position(offset, inode=os.fstat(descriptor).st_ino, digest=digest(descriptor, offset))
