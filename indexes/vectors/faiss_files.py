"""FAISS itself, imported on first use, and its files: what is damaged is named, and never fills the memory."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from indexes.disk.reading import REMEDY, give_back, map_file
from indexes.errors import importing
from indexes.interface import DamagedError, IndexesError, Mask
from indexes.vectors.faiss_checks import File, WrongError

if TYPE_CHECKING:
    from indexes.disk.writing import FileRecord

BUFFER = 1 << 20  # bytes that FAISS hands over at once
Check = Callable[
    [File, int, int], None
]  # of a file by the dimension and number of the vectors; raises WrongError


@functools.cache
def load_faiss() -> Any:
    """Import faiss on first use. Raises MissingExtraError."""
    with importing("vector search", "cpu"):
        import faiss
    return faiss


def bitmap(mask: Mask) -> Any:
    """Return the FAISS selector of the rows that `mask` allows."""
    return load_faiss().IDSelectorBitmap(np.packbits(mask, bitorder="little"))


def write(index: Any, path: Path, flags: int) -> FileRecord:
    """Write a FAISS index durably and return its record. Raises IndexesError, OSError.

    FAISS hands over its bytes: where it writes a file itself, it only prints that the last ones found no room.
    """
    from indexes.disk.writing import DurableFile

    faiss = load_faiss()
    try:
        with DurableFile(path) as file:
            faiss.write_index(index, faiss.PyCallbackIOWriter(file.write, BUFFER), flags)
        return file.record
    except RuntimeError as e:
        raise IndexesError(f"writing {path} failed: {_reason(e)}") from e


def read(path: Path, check: Check, flat: Any, dim: int | None = None) -> Any:
    """Read an index over the vectors in `flat`, after `check` has looked at its bytes. Raises DamagedError."""
    faiss = load_faiss()
    try:
        data = map_file(path)
        check(File(data), dim or flat.d, flat.ntotal)
        give_back(data)
        with _no_vector_above(len(data)):
            return faiss.read_index(str(path), faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE)  # a table for L2 alone
    except (OSError, RuntimeError, MemoryError, WrongError) as e:
        raise damaged(path, _reason(e)) from e


@contextlib.contextmanager
def _no_vector_above(size: int) -> Iterator[None]:
    """Keep FAISS from filling the memory because a damaged file claims a vector longer than itself."""
    faiss = load_faiss()
    if not hasattr(faiss, "set_deserialization_vector_byte_limit"):  # older releases have no such limit
        yield
        return
    before = faiss.get_deserialization_vector_byte_limit()
    faiss.set_deserialization_vector_byte_limit(size)
    try:
        yield
    finally:
        faiss.set_deserialization_vector_byte_limit(before)


def _reason(error: Exception) -> str:
    """Return FAISS's message without its C++ signature and source file."""
    return str(error).rsplit(": ", 1)[-1].strip() or type(error).__name__


def damaged(path: Path, why: str) -> DamagedError:
    """Return the error that names a file that is not what it should be, and the remedy."""
    return DamagedError(f"{path} cannot be used: {why}; {REMEDY}")
