"""Read the lines of a file that may be gzipped, damaged or endless, in bounded memory."""

import codecs
import itertools
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from linker.base.errors import InputError
from linker.base.files import open_input

MAX_LINE = 16 << 20  # maximum number of bytes per line; the rest is dropped
BLOCK = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
UNKNOWN = "linker-unknown"  # name of the handler for undecodable bytes
GZIP = 31  # zlib's `wbits` for gzip, which also verifies the checksum

Line = tuple[int, bytes, int]  # line number from 1, content up to the limit, full size in bytes


class DamagedInputError(InputError):
    """A compressed file is truncated or corrupted; `raw` is the unfinished line, number `line`, before the damage."""

    def __init__(self, path: Path, line: int, reason: str, raw: bytes) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.path, self.line, self.reason, self.raw = path, line, reason, raw


class _DamageError(Exception):
    pass


def read_lines(path: Path, limit: int = MAX_LINE, encoding: str | None = None) -> Iterator[Line]:
    r"""Yield a file's lines without their newlines; gzip is detected by content, a UTF-8 BOM is dropped.

    With an `encoding`, the lines are converted to UTF-8; bytes that cannot be decoded become \xff, which is not
    UTF-8. A line of more than `limit` bytes is truncated and comes with its full size; memory stays near `limit`.
    Raises InputError if the file cannot be read, DamagedInputError after the lines before any damage.
    """
    lines = _split(path, limit, encoding)
    for number, raw, size in itertools.islice(lines, 1):
        if encoding is None and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(
                f"{path} is UTF-16, not UTF-8: convert it, or set `encoding` if the command has that option"
            )
        marked = len(codecs.BOM_UTF8) if raw.startswith(codecs.BOM_UTF8) else 0
        yield number, raw[marked:], size - marked
    yield from lines


class Splitter:
    """Splits blocks of bytes into lines; bytes after the last newline wait for the next block."""

    def __init__(self, limit: int = MAX_LINE, number: int = 1) -> None:
        """`number`: the number of the first line. Lines are truncated to `limit` bytes."""
        self._limit = limit
        self.number, self.head = number, bytearray()
        self.waiting = 0  # number of bytes after the last newline, including truncated ones

    def feed(self, block: bytes) -> Iterator[Line]:
        """Yield the lines that end in a block."""
        *whole, tail = block.split(b"\n")
        for piece in whole:
            if self.waiting:
                self.head += piece[: self._limit - len(self.head)]
                yield self.number, bytes(self.head), self.waiting + len(piece)
                self.head, self.waiting = bytearray(), 0
            else:
                yield self.number, piece[: self._limit], len(piece)
            self.number += 1
        self.head += tail[: self._limit - len(self.head)]
        self.waiting += len(tail)

    def rest(self) -> Iterator[Line]:
        """Yield the last line if no newline ends it."""
        if self.waiting:
            yield self.number, bytes(self.head), self.waiting


def _split(path: Path, limit: int, encoding: str | None) -> Iterator[Line]:
    lines = Splitter(limit)
    try:
        for block in _with_newlines(_convert(_blocks(path), encoding), encoding):
            yield from lines.feed(block)
    except _DamageError as e:
        raise DamagedInputError(path, lines.number, str(e), bytes(lines.head)) from None
    yield from lines.rest()


def _convert(data: Iterable[bytes], encoding: str | None) -> Iterator[bytes]:
    if encoding is None or codecs.lookup(encoding).name == "utf-8":
        yield from data
        return
    decoder = codecs.getincrementaldecoder(encoding)(UNKNOWN)
    for block in data:
        yield decoder.decode(block).encode("utf-8", "surrogateescape")
    yield decoder.decode(b"", True).encode("utf-8", "surrogateescape")


def _with_newlines(data: Iterator[bytes], encoding: str | None) -> Iterator[bytes]:
    """Turn CR into newlines if nothing else ends the lines of a table, as in Excel's "CSV (Macintosh)"."""
    first = next(data, b"")
    is_mac = encoding is not None and b"\r" in first[:-1] and b"\n" not in first
    for block in itertools.chain([first] if first else [], data):
        yield block.replace(b"\r", b"\n") if is_mac else block


def _unknown(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error(UNKNOWN, _unknown)


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield a file's decompressed bytes block by block. Raises InputError if it cannot be read."""
    try:
        with open_input(path) as file:
            first = file.read(BLOCK)
            data = itertools.chain([first] if first else [], iter(lambda: file.read(BLOCK), b""))
            if first.startswith(GZIP_MAGIC):
                yield from _inflate(data)
            elif first and path.suffix == ".gz":
                raise InputError(f"{path} is not gzip data, though its name ends in .gz: rename it")
            else:
                yield from data
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from e


def _inflate(compressed: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress gzip members; if data are damaged, yield everything up to the damage.

    zlib drops the output of a call that fails, so the call is repeated with half as many bytes, down to one.
    """
    inflater, size = zlib.decompressobj(GZIP), BLOCK
    for block in compressed:
        data = block
        while data:
            if inflater.eof:
                data = data.lstrip(b"\0")  # padding between and after members
                if not data:
                    break
                inflater = zlib.decompressobj(GZIP)
            before = inflater.copy()
            try:
                yield inflater.decompress(data, size)
            except zlib.error as e:
                if size == 1:
                    raise _DamageError(f"damaged gzip data ({e}): earlier lines may be corrupt") from None
                inflater, size = before, size // 2
            else:
                data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        yield inflater.flush()
        raise _DamageError("the gzip data end here: the file is truncated")
