"""The lazy import of FAISS, and its files: a damaged file is reported by name and cannot exhaust the memory."""

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

BUFFER = 1 << 20  # bytes that FAISS passes to us at a time
# Checks a file, given the dimension and the number of vectors; raises WrongError.
Check = Callable[[File, int, int], None]


@functools.cache
def load_faiss() -> Any:
    """Return the module `faiss`, imported on first use. Raises MissingExtraError if it is not installed."""
    with importing("vector search", "cpu"):
        import faiss
    return faiss


def bitmap(mask: Mask) -> Any:
    """Return the FAISS selector of the rows that `mask` (bool [n]) allows."""
    return load_faiss().IDSelectorBitmap(np.packbits(mask, bitorder="little"))


def write(index: Any, path: Path, flags: int) -> FileRecord:
    """Write an index by our own writes: FAISS only prints that a disk is full. Raises IndexesError."""
    from indexes.disk.writing import NewFile

    faiss = load_faiss()
    try:
        with NewFile(path) as file:
            faiss.write_index(index, faiss.PyCallbackIOWriter(file.write, BUFFER), flags)
        return file.record
    except RuntimeError as e:
        raise IndexesError(f"writing {path} failed: {_reason(e)}") from e


def read(path: Path, check: Check, flat: Any, dim: int | None = None) -> Any:
    """Return the index in a file, whose vectors are in `flat`, after `check` has passed. Raises DamagedError."""
    faiss = load_faiss()
    try:
        data = map_file(path)
        check(File(data), dim or flat.d, flat.ntotal)
        give_back(data)
        with no_vector_above(len(data)):
            # The precomputed table is for L2 distances only.
            return faiss.read_index(str(path), faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE)
    except (OSError, RuntimeError, MemoryError, WrongError) as e:
        raise damaged(path, _reason(e)) from e


def first_bytes(path: Path) -> bytes:
    """Return the first four bytes of a file, which identify its kind. Raises DamagedError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as e:
        raise damaged(path, e.strerror or "it cannot be read") from e


@contextlib.contextmanager
def no_vector_above(size: int) -> Iterator[None]:
    """Keep FAISS from exhausting the memory if a damaged file declares a vector longer than the file."""
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
    """Return a DamagedError that names the file, the reason and the remedy."""
    return DamagedError(f"{path} cannot be read: {why}; {REMEDY}")
