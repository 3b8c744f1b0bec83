"""The vectors of an index in one place: FAISS's flat index, or a mapped block until something needs FAISS.

Importing FAISS takes a seventh of a CPU second, and a single search of mapped vectors can do without it.
"""

import mmap
import sys
import threading
from importlib.util import find_spec
from typing import Any

import numpy as np

from indexes.disk.reading import expect, give_back, mapping_of
from indexes.interface import Matrix
from indexes.vectors.faiss_files import load_faiss

COPIED = 1 << 14  # rows copied at a time


def lend(flat: Any, block: Matrix) -> bool:
    """Let an empty IndexFlatIP use `block`, float32 [n, dim], in place; return False if that is not possible.

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
    """Copy the block that was lent to the index, if any: FAISS aborts the process if it adds to a view."""
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


class StoredVectors:
    """Normalised vectors of dimension `dim`. Several threads may read at once, but not during a change."""

    def __init__(self, dim: int) -> None:
        """Create an empty store. Raises MissingExtraError if FAISS is not installed."""
        if not faiss_loaded() and find_spec("faiss") is None:
            load_faiss()
        self.dim = dim
        self._block: Matrix | None = None  # vectors that are not yet in a flat index
        self._flat: Any = None
        self._lock = threading.Lock()
        self._scattered = False

    def __len__(self) -> int:
        block = self._block
        return len(block) if block is not None else int(self._flat.ntotal) if self._flat is not None else 0

    @property
    def flat(self) -> Any:
        """The vectors as an IndexFlatIP, over the mapped block if FAISS can use it in place."""
        with self._lock:
            if self._flat is None:
                flat = load_faiss().IndexFlatIP(self.dim)
                if self._block is not None and not lend(flat, self._block):
                    flat.add(np.ascontiguousarray(self._block, dtype=np.float32))
                self._flat, self._block = flat, None
            return self._flat

    @property
    def array(self) -> Matrix:
        """All vectors: a read-only view [rows, dim], valid until the next change."""
        block = self._block
        return block if block is not None else np.asarray(_View(self.flat))

    @property
    def file(self) -> mmap.mmap | None:
        """The mapped file that the vectors are in, or None."""
        block = self._block
        return mapping_of(block) if block is not None else lent_file(self._flat)

    def add(self, vectors: Matrix) -> None:
        """Add vectors, float32 [n, dim]."""
        self.own()
        self.flat.add(vectors)

    def restore(self, blocks: tuple[Matrix, ...]) -> None:
        """Fill an empty store with blocks, float32 [n, dim]: a single one is used in place, several are copied."""
        if self._flat is None and len(blocks) == 1 and _usable(blocks[0]):
            self._block = blocks[0].view()
            self._block.flags.writeable = False
            return
        for block in blocks:
            self.flat.add(np.ascontiguousarray(block, dtype=np.float32))

    def own(self) -> None:
        """Copy the block lent to FAISS, before FAISS writes to it."""
        own(self.flat)

    def expect(self, *, scattered: bool) -> None:
        """Tell the kernel whether single rows of a mapped file are read next, or all of them in sequence.

        Otherwise, for each row that is not in memory, it would read ahead thirty times as much and evict other rows.
        """
        if scattered != self._scattered and (mapped := self.file) is not None:
            self._scattered = scattered
            expect(mapped, scattered=scattered)

    def release(self) -> None:
        """Give the pages of the mapped file back to the kernel; pages that are read again are mapped again."""
        if (mapped := self.file) is not None:
            give_back(mapped)


def faiss_loaded() -> bool:
    """Return whether FAISS has been imported."""
    return sys.modules.get("faiss") is not None


def _usable(block: Matrix) -> bool:
    return bool(block.dtype == np.float32 and block.flags.c_contiguous and len(block))


class _View:
    """Exposes a flat index's memory to numpy, and keeps the index alive as long as the array."""

    def __init__(self, flat: Any) -> None:
        self._flat = flat
        self.__array_interface__ = {
            "shape": (flat.ntotal, flat.d),
            "typestr": np.dtype(np.float32).str,
            "data": (int(flat.get_xb()) if flat.ntotal else 0, True),
            "version": 3,
        }
