"""Flat FAISS indexes over memory that is there already: a mapped file takes no second copy of its vectors."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from indexes.disk.reading import give_back, mapping_of
from indexes.interface import Matrix
from indexes.vectors.faiss_files import load_faiss

COPIED = 1 << 14  # rows copied at a time


def lend(flat: Any, block: Matrix) -> bool:
    """Let an empty IndexFlatIP read `block` [n, dim] where it lies; say whether this release of FAISS can.

    The index keeps the block alive. Before anything is added to it, it must `own` its vectors.
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
    """Copy what was lent to the index, if anything was: FAISS ends the process when it has to add to a view."""
    if not getattr(flat, "referenced_objects", None):
        return
    (block,) = flat.referenced_objects
    flat.codes, flat.ntotal = load_faiss().MaybeOwnedVectorUInt8(), 0
    for start in range(0, len(block), COPIED):
        flat.add(np.ascontiguousarray(block[start : start + COPIED]))
    flat.referenced_objects = []


def release(flat: Any) -> None:
    """Let the kernel take back the pages of a mapped file that was lent; what is read again is mapped again."""
    mapped = lent_file(flat)
    if mapped is not None:
        give_back(mapped)


def lent_file(flat: Any) -> mmap.mmap | None:
    """Return the mapped file whose block was lent to the index, if one was."""
    return mapping_of(next(iter(getattr(flat, "referenced_objects", None) or ()), None))
