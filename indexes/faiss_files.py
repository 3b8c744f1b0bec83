"""FAISS itself, imported on first use, and its files: what is damaged is named, and never fills the memory."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from indexes.errors import importing
from indexes.interface import DamagedError, IndexesError, Mask
from indexes.manifest import FileRecord
from indexes.storage import DurableFile

BUFFER = 1 << 20  # bytes that FAISS hands over at once


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
    faiss = load_faiss()
    try:
        with DurableFile(path) as file:
            faiss.write_index(index, faiss.PyCallbackIOWriter(file.write, BUFFER), flags)
        return file.record
    except RuntimeError as e:
        raise IndexesError(f"writing {path} failed: {_reason(e)}") from e


def read(path: Path, kind: Any, flat: Any, dim: int | None = None) -> Any:
    """Read an index of a kind that belongs to the vectors in `flat`. Raises DamagedError."""
    faiss = load_faiss()
    try:
        with _no_vector_above(path.stat().st_size):
            index = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE)  # a table for L2 alone
    except (OSError, RuntimeError, MemoryError) as e:
        raise damaged(path, _reason(e)) from e
    if not isinstance(index, kind) or index.d != (dim or flat.d) or index.ntotal > flat.ntotal:
        raise damaged(path, "it belongs to another index")
    return index


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
    return DamagedError(f"{path} cannot be used: {why}; restore it from a backup, or rebuild the index")
