"""Read posts as they arrive, from a pipe or from a file that grows: JSON lines, some at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from linker.corpora import Columns
from linker.corpora.reading import read_jsonl
from linker.corpora.records import Record
from linker.errors import InputError
from linker.files import STDIO, open_input
from linker.lines import BLOCK, GZIP_MAGIC, Line, Splitter
from linker.logs import logger

POLL = 0.1  # seconds between two looks at a file that has not grown


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file has been read: whole lines, their bytes, and which file it was (its inode)."""

    offset: int = 0
    lines: int = 0
    inode: int = 0


def is_file(path: Path | None) -> bool:
    """Whether posts can be read again from a position, unlike those of a pipe."""
    return path is not None and path != STDIO and path.is_file()


class Arrivals:
    """The posts of a file, of a pipe or of stdin (`-`), in small batches: what there is by the time one is asked for.

    With `follow`, a file has no end: posts that are appended arrive, and those of a new file of the same name after
    the old one's, as loggers rotate them.
    """

    def __init__(
        self,
        path: Path,
        columns: Columns | None = None,
        *,
        follow: bool = False,
        start: Position | None = None,
    ) -> None:
        """Read from `start`, where it is given and the file is still the same; otherwise from the beginning.

        Raises InputError where the file cannot be read or is compressed.
        """
        self._path, self._columns = path, columns or Columns()
        self._follow = follow and is_file(path)
        self._open()
        if start is not None:
            self._go_on(start)

    def __iter__(self) -> Iterator[tuple[list[Record], Position]]:
        """Yield the records of some lines, and the position after them."""
        with closing(self):
            yield from self._of_file()
            while self._follow:
                self.close()
                self._open()
                yield from self._of_file()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _of_file(self) -> Iterator[tuple[list[Record], Position]]:
        """Yield the batches of the open file until it ends, or another one has taken its name."""
        lines, offset = Splitter(number=self._start.lines + 1), self._start.offset
        for block in self._blocks():
            if offset == 0 and block.startswith(GZIP_MAGIC):
                raise InputError(f"{self._path} is compressed: zcat it, and read `-`")
            offset += len(block)
            whole = list(lines.feed(block))
            if whole:
                yield self._read(whole), Position(offset - lines.waiting, lines.number - 1, self._start.inode)
        if rest := list(lines.rest()):
            yield self._read(rest), Position(offset, lines.number, self._start.inode)

    def _read(self, lines: list[Line]) -> list[Record]:
        return [record for _, record in read_jsonl(self._path, lines, self._columns)]

    def _blocks(self) -> Iterator[bytes]:
        """Yield what can be read, without waiting for more than there is; `read1` returns what a pipe holds."""
        replaced = False
        while True:
            if block := self._file.read1(BLOCK):
                yield block
            elif not self._follow or replaced:
                return
            else:
                # What was written between the last read and the change of names is read once more.
                replaced = self._replaced()
                if not replaced:
                    time.sleep(POLL)

    def _replaced(self) -> bool:
        """Whether the name stands for another file by now, or the file has been cut."""
        try:
            state = self._path.stat()
        except FileNotFoundError:  # between two files
            return False
        return state.st_ino != self._inode() or state.st_size < self._file.tell()

    def _go_on(self, start: Position) -> None:
        state = os.fstat(self._file.fileno())
        if (state.st_ino, state.st_size >= start.offset) != (start.inode, True):
            logger.warning("%s is another file than before: it is read from its beginning", self._path)
            return
        self._file.seek(start.offset)
        self._start = start

    def _open(self) -> None:
        try:
            self._file = open_input(self._path)
        except OSError as e:
            raise InputError(f"cannot read {self._path}: {e.strerror}") from e
        self._start = Position(inode=self._inode())

    def _inode(self) -> int:
        return os.fstat(self._file.fileno()).st_ino
