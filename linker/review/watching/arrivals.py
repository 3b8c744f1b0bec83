"""Read posts as they arrive, from a pipe or from a growing file: JSON lines, in small batches."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.files import STDIO, open_input
from linker.base.lines import BLOCK, GZIP_MAGIC, Line, Splitter
from linker.base.logs import logger
from linker.corpora import BadLine, Columns
from linker.corpora.reading import read_jsonl
from linker.corpora.records import Record
from linker.review.watching.rotation import Position, digest, find, following, holds

POLL = 0.1  # seconds between two checks of a file that has not grown
SUFFIXES = (".jsonl", ".ndjson")


def is_file(path: Path | None) -> bool:
    """Return whether `path` is a file, whose posts can be read again from a position, unlike those of a pipe."""
    return path is not None and path != STDIO and path.is_file()


class Arrivals:
    """The posts of a file, a pipe or stdin (`-`), in small batches of whatever is available.

    With `follow`, reading continues at the end of the file with the posts that are appended, and then with those of a
    new file of the same name, as loggers create when they rotate files. A last line without a newline is read only if
    it is complete, or if nothing more can be appended: otherwise its rest may be written later.
    """

    def __init__(
        self,
        path: Path,
        columns: Columns | None = None,
        *,
        follow: bool = False,
        start: Position | None = None,
    ) -> None:
        """Continue from `start`, even in a file that was rotated in the meantime; by default, from the beginning.

        Raises InputError if the file cannot be read or is compressed.
        """
        self._path, self._columns = path, columns or Columns()
        self._regular = is_file(path)
        self._follow = follow and self._regular
        self._open(*(self._resumed(start) if start and self._regular else (path, Position())))

    def __iter__(self) -> Iterator[tuple[list[Record], Position]]:
        """Yield the records of a batch of lines, and the position after them."""
        with closing(self):
            yield from self._of_file()
            while self._ended and (after := self._following()):
                self.close()
                self._open(*after)
                yield from self._of_file()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _of_file(self) -> Iterator[tuple[list[Record], Position]]:
        """Yield the batches of the open file until it ends, or another file has taken its name."""
        lines, offset = Splitter(number=self._done.lines + 1), self._done.offset
        for block in self._blocks():
            if offset == 0 and block.startswith(GZIP_MAGIC):
                raise InputError(f"{self._path} is compressed: pipe it through zcat, and read `-`")
            offset += len(block)
            whole = list(lines.feed(block))
            if whole:
                yield self._read(whole), self._reach(offset - lines.waiting, lines.number - 1)
        if rest := list(lines.rest()):
            records = self._read(rest)
            if self._ended or not any(isinstance(record, BadLine) for record in records):
                yield records, self._reach(offset, lines.number)
            else:
                logger.warning(
                    "the last line of %s (%d) is incomplete: a watch with `resume` or `follow` will read it",
                    self._path,
                    lines.number,
                )

    def _read(self, lines: list[Line]) -> list[Record]:
        return [record for _, record in read_jsonl(self._path, lines, self._columns)]

    def _reach(self, offset: int, lines: int) -> Position:
        inode, read = self._inode(), digest(self._file.fileno(), offset) if self._regular else ""
        self._done = Position(offset, lines, inode, read)
        return self._done

    def _blocks(self) -> Iterator[bytes]:
        """Yield the available data without waiting for more; `read1` returns the data in a pipe."""
        while True:
            # Checked first, so that data written just before another file took the name is also read.
            self._ended = not self._regular or self._following() is not None
            while block := self._file.read1(BLOCK):
                yield block
            if self._ended or not self._follow:
                return
            time.sleep(POLL)

    def _following(self) -> tuple[Path, Position] | None:
        """Return the file to read after the open one, and its start position; None if there is none yet."""
        if not self._regular:
            return None
        if os.fstat(self._file.fileno()).st_size < self._file.tell():  # it was truncated
            copy = find(self._path, self._done)
            return (copy, self._done) if copy else (self._path, Position())
        path = following(self._path, self._inode())
        return (path, Position()) if path else None

    def _resumed(self, start: Position) -> tuple[Path, Position]:
        """Return the file that was read up to `start`, whatever its name is now; if it is gone, warn and start over."""
        if path := find(self._path, start):
            return path, start
        logger.warning(
            "%s has been replaced by another file: it is read from its beginning. Lines after line %d of the earlier "
            "file are not matched: if that was compressed or moved, watch it separately (`-` reads a pipe)",
            self._path,
            start.lines,
        )
        return self._path, Position()

    def _open(self, path: Path, start: Position) -> None:
        """Open a file at a position; skip the newline there if the last line was read before it was written."""
        try:
            self._file = open_input(path)
        except OSError as e:
            raise InputError(f"cannot read {path}: {e.strerror}") from e
        self._done, self._ended = start, False
        if start.offset:
            self._file.seek(start.offset - 1)
            before, after = self._file.read(1), self._file.read(1)
            if before != b"\n" and after == b"\n":
                self._reach(start.offset + 1, start.lines)
            self._file.seek(self._done.offset)

    def _inode(self) -> int:
        return os.fstat(self._file.fileno()).st_ino


class Appended:
    """The documents appended to files of JSON lines since the start, after what was then the last complete line."""

    def __init__(self, paths: Iterable[Path], columns: Columns | None = None) -> None:
        """Start at the current ends of the files, all of which must pass `can_read`."""
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
        """Return the documents in whole lines appended since the last call; None if a file changed in any other way.

        Invalid lines are left to the next reading of the whole file, which reports them.
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
    """Return the position at `offset` in an open file, without a line count."""
    descriptor = file.fileno()
    return Position(offset, inode=os.fstat(descriptor).st_ino, digest=digest(descriptor, offset))
