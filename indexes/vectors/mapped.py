"""Flat FAISS indexes over existing memory, so that the vectors of a mapped file are not copied."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from indexes.disk.reading import mapping_of
from indexes.interface import Matrix
from indexes.vectors.faiss_files import load_faiss

COPIED = 1 << 14  # rows copied at a time


def lend(flat: Any, block: Matrix) -> bool:
    """Let an empty IndexFlatIP use `block`, float32 [n, dim], in place; return False where that is not possible.

    The index keeps the block alive. Before vectors are added to the index, `own` must copy the block.
    """
    faiss = load_faiss()
    fits = block.dtype == np.float32 and block.flags.c_contiguous and len(block)
    if not fits or not hasattr(faiss, "MaybeOwnedVectorUInt8"):
        return False
    view = faiss.MaybeOwnedVectorUInt8()
    view.is_owned, view.view_size = False, block.nbytes
    view.view_data = faiss.swig_ptr(block.reshape(-1).view(np.uint8))
    flat.codes, flat.ntotal = view, len(block)
    flat.referenced_objects = [block]
    return True


def own(flat: Any) -> None:
    """Copy the block that was lent to the index, if any: FAISS aborts the process when it adds to a view."""
    if not getattr(flat, "referenced_objects", None):
        return
    (block,) = flat.referenced_objects
    flat.codes, flat.ntotal = load_faiss().MaybeOwnedVectorUInt8(), 0
    for start in range(0, len(block), COPIED):
        flat.add(np.ascontiguousarray(block[start : start + COPIED]))
    flat.referenced_objects = []


def lent_file(flat: Any) -> mmap.mmap | None:
    """Return the mapped file whose block was lent to the index, or None."""
    return mapping_of(next(iter(getattr(flat, "referenced_objects", None) or ()), None))
