"""Wikimedia dump files as a stream: plain, or compressed by gzip, bzip2 (also multistream) or xz."""

import bz2
import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from linker.base.errors import InputError
from linker.base.files import open_input

BLOCK = 1 << 18  # bytes decompressed at a time
MAGIC: dict[bytes, Callable[[BinaryIO], BinaryIO]] = {
    b"BZh": lambda file: cast(BinaryIO, bz2.BZ2File(file)),
    b"\x1f\x8b": lambda file: cast(BinaryIO, gzip.GzipFile(fileobj=file)),
    b"\xfd7zXZ": lambda file: cast(BinaryIO, lzma.LZMAFile(file)),  # noqa: SIM115 - it closes with the file below
}
UNREADABLE = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"7z\xbc\xaf": ("7z", "7z x"),
    b"PK": ("zip", "unzip"),
}
REMEDY = "download it again and compare its checksum with the published one"


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Iterator[bytes]]:
    """Open a file and return an iterator over its decompressed blocks of at most `BLOCK` bytes.

    The content determines the compression, not the name. Raises InputError if the file cannot be read, its compressed
    data are damaged or truncated, or it is compressed in another way.
    """
    try:
        with open_input(path) as file:
            yield _blocks(path, file)
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from e


def _blocks(path: Path, file: io.BufferedReader) -> Iterator[bytes]:
    start = file.peek(8)[:8]
    for magic, (name, command) in UNREADABLE.items():
        if start.startswith(magic):
            raise InputError(f"{path} is {name} data, which linker does not read: unpack it with '{command}'")
    opener = next((opener for magic, opener in MAGIC.items() if start.startswith(magic)), None)
    stream = opener(file) if opener else file
    try:
        while block := stream.read(BLOCK):
            yield block
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as e:
        raise InputError(f"{path} is damaged or truncated ({e}): {REMEDY}") from None


def first_block(path: Path) -> bytes:
    """Return the beginning of a file's decompressed content; nothing for a folder or pipe. Raises as `reading` does."""
    if not path.is_file():
        return b""
    with reading(path) as blocks:
        return next(blocks, b"")
