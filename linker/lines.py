"""Read the lines of a file that may be gzipped, damaged or endless, in bounded memory."""

from __future__ import annotations

import codecs
import itertools
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from linker.errors import InputError
from linker.files import open_input

MAX_LINE = 16 << 20  # bytes; the rest of a longer line is dropped
BLOCK = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
GZIP = 31  # zlib's window bits for gzip with its checksum

Line = tuple[int, bytes, int]  # number from 1, content cut at the limit, bytes before the cut


class DamagedInputError(InputError):
    """A compressed file is cut or corrupted; `raw` is the unfinished line, number `line`, before the damage."""

    def __init__(self, path: Path, line: int, reason: str, raw: bytes) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.path, self.line, self.reason, self.raw = path, line, reason, raw


class _DamageError(Exception):
    pass


def read_lines(path: Path, limit: int = MAX_LINE) -> Iterator[Line]:
    """Yield a file's lines without their newlines; gzip is detected by content, a UTF-8 BOM is dropped.

    A line of more than `limit` bytes is cut and comes with its size before the cut; memory stays near `limit`.
    Raises InputError where the file cannot be read, DamagedInputError after the lines before any damage.
    """
    lines = _split(path, limit)
    for number, raw, size in itertools.islice(lines, 1):
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(f"{path} is UTF-16, not UTF-8: convert it (iconv -f UTF-16 -t UTF-8)")
        marked = len(codecs.BOM_UTF8) if raw.startswith(codecs.BOM_UTF8) else 0
        yield number, raw[marked:], size - marked
    yield from lines


def _split(path: Path, limit: int) -> Iterator[Line]:
    # head and size are of the line that continues in the next block.
    number, head, size = 1, bytearray(), 0
    try:
        for block in _blocks(path):
            *whole, tail = block.split(b"\n")
            for piece in whole:
                if size:
                    head += piece[: limit - len(head)]
                    yield number, bytes(head), size + len(piece)
                    head, size = bytearray(), 0
                else:
                    yield number, piece[:limit], len(piece)
                number += 1
            head += tail[: limit - len(head)]
            size += len(tail)
    except _DamageError as e:
        raise DamagedInputError(path, number, str(e), bytes(head)) from None
    if size:
        yield number, bytes(head), size


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        with open_input(path) as file:
            first = file.read(BLOCK)
            blocks = itertools.chain([first] if first else [], iter(lambda: file.read(BLOCK), b""))
            if first.startswith(GZIP_MAGIC):
                yield from _inflate(blocks)
            elif first and path.suffix == ".gz":
                raise InputError(f"{path} is not gzip data, though its name ends in .gz: rename it")
            else:
                yield from blocks
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from e


def _inflate(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress gzip members; of damaged data, yield everything up to the damage.

    zlib drops the output of a call that fails, so the call is repeated for half as many bytes, down to one.
    """
    inflater, size = zlib.decompressobj(GZIP), BLOCK
    for block in blocks:
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
                    raise _DamageError(f"damaged gzip data ({e}): lines before it may be altered") from None
                inflater, size = before, size // 2
            else:
                data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        yield inflater.flush()
        raise _DamageError("the gzip data break off here: the file was cut")
