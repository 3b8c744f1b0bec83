"""Candidate generation by FAISS's HNSW graph, over the vectors of a flat index, which are not stored twice.

The graph returns rows in no guaranteed order; scores come from the raw vectors.
HNSW: Malkov and Yashunin, https://arxiv.org/abs/1603.09320. Compressed codes are in pq.py.
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


BLOCK = 1 << 14  # rows processed at a time


class Hnsw:
    """CandidateGenerator by a hierarchical navigable small-world graph; a larger `ef` is slower and finds more."""

    FOURCCS: ClassVar[Sequence[bytes]] = (b"IHNf",)
    LINKS, EF_CONSTRUCTION = 32, 100
    GRID: ClassVar[Sequence[Settings]] = tuple(
        {"ef": ef} for ef in (32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
    )

    def __init__(self) -> None:
        self.settings: dict[str, float] = {"ef": 128}
        self._index: Any = None
        self._copies = _Copies()

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Link the new rows of `vectors`, float32 [n, d], into the graph."""
        faiss = load_faiss()
        if self._index is None:
            index = faiss.IndexHNSWFlat(flat.d, self.LINKS, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = self.EF_CONSTRUCTION
            _attach(index, flat)
            self._index = index
        index, self._index = self._index, None  # so that a half-built graph (after Ctrl-C) is never used
        total = flat.ntotal
        self._set_levels(index, vectors)
        # `add` also appends to the storage. The rows are already there, so with `ntotal` lowered it writes them onto
        # themselves: there is never a second copy of the vectors.
        flat.ntotal = index.ntotal
        try:
            index.add(vectors[index.ntotal :])
        finally:
            flat.ntotal = total
        self._index = index

    def _set_levels(self, index: Any, vectors: Matrix) -> None:
        """Choose the levels of the new rows: at random as in the paper, but copies only on the lowest level.

        Copies (retweets, empty texts) are linked to each other, so a search that reaches one on its way down finds
        nothing else. With 58 % copies among the rows, recall of the top ten was 0.60; with this rule it is 0.99.
        """
        faiss, known = load_faiss(), index.ntotal
        cumulative = np.cumsum(faiss.vector_to_array(index.hnsw.assign_probas))[:-1]
        samples = np.random.default_rng(known).random(len(vectors) - known)
        levels = 1 + np.searchsorted(cumulative, samples, side="right")
        levels[self._copies.among(vectors, known)] = 1
        old_levels = faiss.vector_to_array(index.hnsw.levels)
        faiss.copy_array_to_vector(np.concatenate([old_levels, levels]).astype(np.int32), index.hnsw.levels)

    def cost(self, fetch: int, rows: int) -> float:
        """Return the number of vectors compared; about half of a visited node's links lead to nodes seen before."""
        return self.LINKS * self._width(fetch)

    def _width(self, fetch: int) -> int:
        return max(int(self.settings["ef"]), 2 * fetch)

    def generate(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Return likely rows, int64 [n_queries, fetch], by a search that is wider the fewer rows `mask` allows."""
        faiss = load_faiss()
        ef = self._width(fetch)
        if mask is None:
            parameters = faiss.SearchParametersHNSW(efSearch=ef)
        else:
            wide_ef = math.ceil(ef * mask.size / mask.sum())
            parameters = faiss.SearchParametersHNSW(efSearch=wide_ef, sel=bitmap(mask))
        rows: RowArray = self._index.search(queries, fetch, params=parameters)[1]
        return rows

    def save(self, path: Path) -> FileRecord:
        """Write the graph without the vectors; return the file record. Raises IndexesError if writing fails."""
        return write(self._index, path, load_faiss().IO_FLAG_SKIP_STORAGE)

    def load(self, path: Path, flat: Any) -> int:
        """Attach the saved graph to `flat`; return its row count. Raises DamagedError if the file is invalid."""
        index = read(path, hnsw, flat)
        _attach(index, flat)
        self._index = index
        return int(index.ntotal)


class _Copies:
    """Detects rows that are copies of earlier ones, by stored signatures of 8 bytes per row.

    A signature hashes SIDES random projections of a unit vector, rounded to 1 / GRAIN. It is equal for vectors that
    differ in their last bits (1e-7), as those of one text encoded in two batches do, for 95 % of vectors that differ by
    1e-4, and for almost none that differ by 0.02.
    """

    SIDES, GRAIN = 16, 32

    def __init__(self) -> None:
        self._known = np.empty(0, dtype=np.uint64)  # sorted
        self._rows = 0  # the number of rows seen

    def among(self, vectors: Matrix, first: int) -> Mask:
        """Return which of the rows [first:] of `vectors` [n, d] are copies of an earlier row, bool [n − first]."""
        if self._rows < first:  # after loading
            self._take(vectors[self._rows : first])
        return self._take(vectors[first:])

    def _take(self, vectors: Matrix) -> Mask:
        keys = self._signatures(vectors)
        copies = np.ones(len(keys), dtype=np.bool_)
        copies[np.unique(keys, return_index=True)[1]] = False
        positions = np.searchsorted(self._known, keys)
        copies |= (
            self._known[np.minimum(positions, len(self._known) - 1)] == keys if len(self._known) else False
        )
        new = np.sort(keys[~copies])
        self._known = np.insert(self._known, np.searchsorted(self._known, new), new)
        self._rows += len(keys)
        return copies

    def _signatures(self, vectors: Matrix) -> np.ndarray[Any, np.dtype[np.uint64]]:
        rng = np.random.default_rng(0)
        projections = rng.standard_normal((vectors.shape[1], self.SIDES), dtype=np.float32) * self.GRAIN
        factors = rng.integers(1 << 63, size=self.SIDES, dtype=np.uint64) * 2 + 1
        keys = np.empty(len(vectors), dtype=np.uint64)
        for start in range(0, len(vectors), BLOCK):
            rounded = np.rint(vectors[start : start + BLOCK] @ projections).astype(np.int64)
            keys[start : start + BLOCK] = rounded.view(np.uint64) @ factors
        return keys


def _attach(graph: Any, flat: Any) -> None:
    """Make the graph use `flat` instead of its own storage; FAISS keeps a bare pointer to it.

    The empty storage of a new graph (a few hundred bytes) is not freed, because freeing it through SWIG corrupts
    SWIG's type table.
    """
    graph.storage, graph.own_fields = flat, False
    graph.referenced_objects = [flat]
