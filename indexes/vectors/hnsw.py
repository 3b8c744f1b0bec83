"""Approximate neighbours by FAISS over vectors that a flat index keeps: a graph, cells with codes, or codes alone.

None holds the raw vectors a second time, and none scores: they propose rows, in no promised order.
HNSW: Malkov and Yashunin, https://arxiv.org/abs/1603.09320. The codes are in codes.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from indexes.interface import Mask, Matrix, RowArray
from indexes.vectors.faiss_checks import hnsw
from indexes.vectors.faiss_files import bitmap, load_faiss, read, write
from indexes.vectors.pq import Settings

if TYPE_CHECKING:
    from indexes.disk.writing import FileRecord


BLOCK = 1 << 14  # rows looked at together


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
        self._copies = _Copies()

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
        self._set_levels(index, vectors)
        # `add` also appends to the storage. The rows are there already, so it is made to write them onto
        # themselves: no second copy of the vectors exists at any time.
        flat.ntotal = index.ntotal
        try:
            index.add(vectors[index.ntotal :])
        finally:
            flat.ntotal = total
        self._index = index

    def _set_levels(self, index: Any, vectors: Matrix) -> None:
        """Choose on how many levels the new rows stand: by chance as in the paper, but copies on the lowest alone.

        Copies (retweets, empty texts) are linked among themselves. A search that comes upon one on its way down finds
        nothing else: where 58 % of the rows were copies it found .60 of the ten best, and .99 since they keep off.
        """
        faiss, known = load_faiss(), index.ntotal
        enough = np.cumsum(faiss.vector_to_array(index.hnsw.assign_probas))[:-1]
        chance = np.random.default_rng(known).random(len(vectors) - known)
        levels = 1 + np.searchsorted(enough, chance, side="right")
        levels[self._copies.among(vectors, known)] = 1
        earlier = faiss.vector_to_array(index.hnsw.levels)
        faiss.copy_array_to_vector(np.concatenate([earlier, levels]).astype(np.int32), index.hnsw.levels)

    def cost(self, fetch: int, rows: int) -> float:
        """Every node on the way is compared with its links, of which about half were seen before."""
        return self.LINKS * self._width(fetch)

    def _width(self, fetch: int) -> int:
        return max(int(self.settings["ef"]), 2 * fetch)

    def generate(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
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

    def save(self, path: Path) -> FileRecord:
        """Write the graph alone."""
        return write(self._index, path, load_faiss().IO_FLAG_SKIP_STORAGE)

    def load(self, path: Path, flat: Any) -> int:
        """Read the graph and hang it on the vectors in `flat`."""
        index = read(path, hnsw, flat)
        _attach(index, flat)
        self._index = index
        return int(index.ntotal)


class _Copies:
    """Tells rows that are copies of earlier ones, by signatures of 8 bytes a row that are kept.

    A signature is SIDES random projections of a unit vector, rounded to 1 / GRAIN: equal for vectors that differ in
    their last bits, as those of one text from two batches do (1e-7), for 95 % of those that differ by 1e-4, and for
    next to none that differ by .02.
    """

    SIDES, GRAIN = 16, 32

    def __init__(self) -> None:
        self._known = np.empty(0, dtype=np.uint64)  # sorted
        self._rows = 0  # that they are of

    def among(self, vectors: Matrix, first: int) -> Mask:
        """Say which rows [first:] of `vectors` [n, d] are like an earlier one."""
        if self._rows < first:  # after loading
            self._take(vectors[self._rows : first])
        return self._take(vectors[first:])

    def _take(self, vectors: Matrix) -> Mask:
        keys = self._signatures(vectors)
        copies = np.ones(len(keys), dtype=np.bool_)
        copies[np.unique(keys, return_index=True)[1]] = False
        at = np.searchsorted(self._known, keys)
        copies |= self._known[np.minimum(at, len(self._known) - 1)] == keys if len(self._known) else False
        new = np.sort(keys[~copies])
        self._known = np.insert(self._known, np.searchsorted(self._known, new), new)
        self._rows += len(keys)
        return copies

    def _signatures(self, vectors: Matrix) -> np.ndarray[Any, np.dtype[np.uint64]]:
        rng = np.random.default_rng(0)
        sides = rng.standard_normal((vectors.shape[1], self.SIDES), dtype=np.float32) * self.GRAIN
        factors = rng.integers(1 << 63, size=self.SIDES, dtype=np.uint64) * 2 + 1
        keys = np.empty(len(vectors), dtype=np.uint64)
        for start in range(0, len(vectors), BLOCK):
            rounded = np.rint(vectors[start : start + BLOCK] @ sides).astype(np.int64)
            keys[start : start + BLOCK] = rounded.view(np.uint64) @ factors
        return keys


def _attach(graph: Any, flat: Any) -> None:
    """Make the graph use `flat` instead of a storage of its own; FAISS keeps a bare pointer to it.

    The empty storage a new graph was made with (some hundred bytes) is not freed: SWIG's way to do so corrupts
    its own type table.
    """
    graph.storage, graph.own_fields = flat, False
    graph.referenced_objects = [flat]
