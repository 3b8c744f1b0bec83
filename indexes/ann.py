"""Approximate neighbours by FAISS over vectors that a flat index keeps: a graph, cells with codes, or codes alone.

None holds the raw vectors a second time, and none scores: they propose rows, in no promised order.
HNSW: Malkov and Yashunin, https://arxiv.org/abs/1603.09320. The codes are in codes.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from indexes.codes import IvfPq, PqScan, Settings
from indexes.faiss_files import bitmap, damaged, load_faiss, read, write
from indexes.interface import Mask, Matrix, RowArray

__all__ = [
    "AUTO", "AUTO_EXACT", "KINDS", "Hnsw", "IvfPq", "PqScan", "Proposer", "Settings", "bitmap", "kind_by_size",
    "kind_of", "load_faiss",
]  # fmt: skip

AUTO = "auto"  # exact below AUTO_EXACT rows, then by size
AUTO_EXACT, AUTO_CELLS = 200_000, 2_000_000
BLOCK = 1 << 14  # rows looked at together


class Proposer(Protocol):
    """What stands between a query and the scan of everything."""

    FOURCC: ClassVar[bytes]  # the first bytes of its file
    GRID: ClassVar[Sequence[Settings]]  # the settings that `index tune --recall` tries
    settings: dict[str, float]  # what a search costs against what it finds

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Take in the rows of `flat` (an IndexFlatIP; `vectors` [n, d] is a view of it) not taken in yet."""
        ...

    def cost(self, fetch: int, rows: int) -> float:
        """Return about how many vector comparisons a query costs, when `rows` rows are indexed."""
        ...

    def propose(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Return likely rows [n_queries, fetch or more], filled with −1; only rows that `mask` allows."""
        ...

    def save(self, path: Path) -> None:
        """Write everything but the raw vectors to a file."""
        ...

    def load(self, path: Path, flat: Any) -> int:
        """Read what `save` wrote and return how many rows it knows. Raises DamagedError."""
        ...


class Hnsw:
    """A navigable small-world graph; recall against speed is set by `ef`, the width of the search."""

    FOURCC: ClassVar[bytes] = b"IHNf"
    LINKS, EF_CONSTRUCTION = 32, 100
    GRID: ClassVar[Sequence[Settings]] = tuple(
        {"ef": ef} for ef in (32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
    )

    def __init__(self) -> None:
        self.settings: dict[str, float] = {"ef": 128}
        self._index: Any = None

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Link the new rows into the graph."""
        faiss = load_faiss()
        if self._index is None:
            index = faiss.IndexHNSWFlat(flat.d, self.LINKS, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = self.EF_CONSTRUCTION
            _attach(index, flat)
            self._index = index
        index, self._index = self._index, None  # a graph left half built (Ctrl-C) is not used again
        total = flat.ntotal
        _set_levels(index, vectors)
        # `add` also appends to the storage. The rows are there already, so it is made to write them onto
        # themselves: no second copy of the vectors exists at any time.
        flat.ntotal = index.ntotal
        try:
            index.add(vectors[index.ntotal :])
        finally:
            flat.ntotal = total
        self._index = index

    def cost(self, fetch: int, rows: int) -> float:
        """Every node on the way is compared with its links, of which about half were seen before."""
        return self.LINKS * self._width(fetch)

    def _width(self, fetch: int) -> int:
        return max(int(self.settings["ef"]), 2 * fetch)

    def propose(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Walk the graph, the wider the fewer rows are allowed: forbidden ones are passed, not returned."""
        faiss = load_faiss()
        ef = self._width(fetch)
        if mask is None:
            parameters = faiss.SearchParametersHNSW(efSearch=ef)
        else:
            wider = math.ceil(ef * mask.size / mask.sum())
            parameters = faiss.SearchParametersHNSW(efSearch=wider, sel=bitmap(mask))
        rows: RowArray = self._index.search(queries, fetch, params=parameters)[1]
        return rows

    def save(self, path: Path) -> None:
        """Write the graph alone."""
        write(self._index, path, load_faiss().IO_FLAG_SKIP_STORAGE)

    def load(self, path: Path, flat: Any) -> int:
        """Read the graph and hang it on the vectors in `flat`."""
        faiss = load_faiss()
        index = read(path, faiss.IndexHNSWFlat, flat)
        neighbours = faiss.vector_to_array(index.hnsw.neighbors)
        ends = faiss.vector_to_array(index.hnsw.offsets)
        if (
            not -1 <= index.hnsw.entry_point < index.ntotal
            or len(ends) != index.ntotal + 1
            or ends[-1] != len(neighbours)
            or (neighbours >= index.ntotal).any()
        ):
            raise damaged(path, "its links point outside the index")
        _attach(index, flat)
        self._index = index
        return int(index.ntotal)


KINDS: dict[str, type[Hnsw] | type[IvfPq] | type[PqScan]] = {"hnsw": Hnsw, "ivfpq": IvfPq, "pq": PqScan}


def kind_by_size(rows: int) -> str:
    """Return what `auto` builds: codes alone are made in seconds and find as much; cells pay with millions of rows."""
    return "pq" if rows < AUTO_CELLS else "ivfpq"


def kind_of(path: Path) -> str:
    """Return the kind of a saved structure by its first bytes. Raises DamagedError."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as e:
        raise damaged(path, e.strerror or "it cannot be read") from e
    for name, kind in KINDS.items():
        if start == kind.FOURCC:
            return name
    raise damaged(path, "it is none of ours")


def _set_levels(graph: Any, vectors: Matrix) -> None:
    """Choose on how many levels the new rows stand: by chance as in the paper, but copies on the lowest alone.

    Copies (retweets, empty texts) are linked among themselves. A search that comes upon one on its way down finds
    nothing else: where 40 % of the rows were copies it found .60 of the ten best, and .99 since they keep off the way.
    """
    faiss, known = load_faiss(), graph.ntotal
    enough = np.cumsum(faiss.vector_to_array(graph.hnsw.assign_probas))[:-1]
    levels = 1 + np.searchsorted(
        enough, np.random.default_rng(known).random(len(vectors) - known), side="right"
    )
    levels[_copies(vectors)[known:]] = 1
    earlier = faiss.vector_to_array(graph.hnsw.levels)
    faiss.copy_array_to_vector(np.concatenate([earlier, levels]).astype(np.int32), graph.hnsw.levels)


def _copies(vectors: Matrix) -> Mask:
    """Say which rows equal an earlier one; by 64-bit checksums, so that one in 2⁶⁴ pairs only seems to."""
    factors = np.random.default_rng(0).integers(1 << 63, size=vectors.shape[1], dtype=np.uint64) * 2 + 1
    keys = np.empty(len(vectors), dtype=np.uint64)
    for start in range(0, len(vectors), BLOCK):
        block = np.ascontiguousarray(vectors[start : start + BLOCK])
        keys[start : start + BLOCK] = block.view(np.uint32) @ factors
    copies = np.ones(len(vectors), dtype=np.bool_)
    copies[np.unique(keys, return_index=True)[1]] = False
    return copies


def _attach(graph: Any, flat: Any) -> None:
    """Make the graph use `flat` instead of a storage of its own; FAISS keeps a bare pointer to it.

    The empty storage a new graph was made with (some hundred bytes) is not freed: SWIG's way to do so corrupts
    its own type table.
    """
    graph.storage, graph.own_fields = flat, False
    graph.referenced_objects = [flat]
