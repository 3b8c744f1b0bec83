"""Vector search by FAISS: exact (`flat`), a graph (`hnsw`), or cells with compressed codes (`ivfpq`).

Every kind keeps the raw normalised vectors once, in an IndexFlatIP. Whatever proposes rows, the answer's scores
come from one formula over the raw vectors, so a score depends neither on the size of the batch nor on the kind,
and equal vectors score equal.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexes.ann import KINDS, Proposer, bitmap, load_faiss
from indexes.exact import check_dim, check_k, normalised, padding
from indexes.interface import (
    Filter,
    Hits,
    IndexesError,
    Mask,
    Matrix,
    Metadata,
    RowArray,
    ScoreArray,
    check_vectors,
)
from indexes.rows import Rows

BLAS_BATCH = 5  # from so many queries on a matrix product beats one scan a query (measured, d = 64 … 1024)
NEVER = 2**31 - 1
BLOCK_FLOATS = 1 << 20  # floats copied at a time when a filter picks rows: 4 MiB, about a CPU cache
SCORED_FLOATS = 1 << 24  # scores held at a time when ties at the cut are settled: 64 MiB
GPU_K = 2048  # FAISS's limit on the GPU


class FaissIndex:
    """VectorIndex and RowSearch. Searches may run in several threads at once; changes need the index alone.

    `hnsw` and `ivfpq` answer exactly while they hold fewer than `exact_below` rows, and whenever a filter leaves
    so few rows that comparing each is cheaper. Otherwise they are approximate, yet never return fewer hits than
    exist; equal scores are in row order, but of more equal ones than fit, any may be returned.
    """

    def __init__(self, dim: int, kind: str = "flat", *, exact_below: int = 10_000) -> None:
        check_dim(dim)
        if kind != "flat" and kind not in KINDS:
            raise IndexesError(f"unknown kind of vector index {kind!r}: choose flat, {', '.join(KINDS)}")
        self.dim, self.kind = dim, kind
        self._flat: Any = load_faiss().IndexFlatIP(dim)
        self._gpu: Any = None
        self._rows = Rows()
        self._proposer: Proposer | None = None
        self._proposed = 0  # rows the proposer has taken in
        self._exact_below = exact_below
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def vectors(self) -> Matrix:
        """All normalised vectors, dead rows included: a read-only view, valid until the next change."""
        return np.asarray(_View(self._flat))

    def add(self, ids: Sequence[str], vectors: Matrix, metadata: Sequence[Metadata] | None = None) -> None:
        """Add a batch, all or nothing. Raises DuplicateIdError, BadIdError, BadVectorError."""
        new = normalised(check_vectors(vectors, self.dim, ids))
        self._rows.append(ids, metadata)
        self._flat.add(new)
        self._gpu = None

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError. The vectors' memory is not given back."""
        self._rows.remove(ids)

    def restore(self, rows: Rows, *blocks: Matrix) -> None:
        """Fill an empty index from storage: its rows and their vectors, normalised already, in blocks [n, dim].

        A block may be a memory map: each is copied once, and nothing else is held.
        """
        total = sum(len(block) for block in blocks)
        if total != len(rows.ids) or any(block.shape[1:] != (self.dim,) for block in blocks):
            shapes = [block.shape for block in blocks]
            raise IndexesError(f"{len(rows.ids)} ids of dimension {self.dim}, but vectors {shapes}")
        self._rows = rows
        for block in blocks:
            self._flat.add(np.ascontiguousarray(block, dtype=np.float32))

    def build(self) -> None:
        """Train, and take in what was added since; searches do this by themselves when it is due."""
        with self._lock:
            total = self._flat.ntotal
            if self.kind == "flat" or total < self._exact_below or total == self._proposed:
                return
            proposer = self._proposer or KINDS[self.kind]()
            proposer.extend(self._flat, self.vectors)
            self._proposer, self._proposed = proposer, total

    def save_graph(self, path: Path) -> bool:
        """Write what took long to build, without the vectors; say whether there was anything to write."""
        self.build()
        if self._proposer is None:
            return False
        self._proposer.save(path)
        return True

    def load_graph(self, path: Path) -> None:
        """Read what `save_graph` wrote, after `restore`; it may lack the last rows. Raises DamagedError."""
        if self.kind == "flat":
            raise IndexesError(f"{path}: a flat index has no graph to load")
        proposer = KINDS[self.kind]()
        self._proposed = proposer.load(path, self._flat)
        self._proposer = proposer

    def search(self, vectors: Matrix, k: int, where: Filter | None = None) -> list[Hits]:
        """Return the best min(k, matching) documents of each query; equal scores come in row order."""
        check_k(k)
        return self._rows.hits(*self.search_rows(vectors, min(k, len(self) or 1), where))

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n, k], filled with −1 and −inf."""
        check_k(k)
        queries = normalised(check_vectors(queries, self.dim))
        mask = self._rows.mask(where)
        allowed = self._flat.ntotal if mask is None else int(np.count_nonzero(mask))
        found = min(k, allowed)
        if not found or not len(queries):
            return padding(len(queries), k)
        self.build()
        if self._proposal_pays(found, allowed):
            rows, scores = self._approximate(queries, found, mask)
        else:
            rows, scores = self._exact(queries, found, mask, allowed)
        if found == k:
            return rows, scores
        all_rows, all_scores = padding(len(queries), k)
        all_rows[:, :found], all_scores[:, :found] = rows, scores
        return all_rows, all_scores

    def _proposal_pays(self, k: int, allowed: int) -> bool:
        """Compare the allowed rows with what a search costs, which grows as fewer rows are allowed."""
        if self._proposer is None:
            return False
        total: int = self._flat.ntotal
        return allowed * allowed > self._proposer.cost(_with_reserve(k), total) * total

    def _approximate(self, queries: Matrix, k: int, mask: Mask | None) -> tuple[RowArray, ScoreArray]:
        assert self._proposer is not None
        rows = self._proposer.propose(queries, _with_reserve(k), mask)
        rows, scores = _best(rows, self._scores(queries, rows), k)
        short = np.flatnonzero(rows[:, -1] < 0)
        if len(short):
            allowed = self._flat.ntotal if mask is None else int(np.count_nonzero(mask))
            rows[short], scores[short] = self._exact(queries[short], k, mask, allowed)
        return rows, scores

    def _exact(self, queries: Matrix, k: int, mask: Mask | None, allowed: int) -> tuple[RowArray, ScoreArray]:
        """Scan all allowed rows; then settle the queries where the scan's rounding decides who is in."""
        fetch = min(_with_reserve(k), allowed)
        rough, rows = self._scan(queries, fetch, mask)
        least = rough[:, -1]
        rows, scores = _best(rows, self._scores(queries, rows), k)
        if fetch < allowed:
            doubtful = np.flatnonzero(scores[:, -1] <= least + self._rounding)
            if len(doubtful):
                least_in = scores[doubtful, -1]
                rows[doubtful], scores[doubtful] = self._settle(queries[doubtful], k, mask, least_in)
        return rows, scores

    @property
    def _rounding(self) -> float:
        """Most by which two float32 inner products of the same unit vectors differ (Higham 2002, eq. 3.5)."""
        return self.dim * 2.0**-23

    def _scan(self, queries: Matrix, k: int, mask: Mask | None) -> tuple[ScoreArray, RowArray]:
        """Return the k best scores and rows by FAISS; equal ones in any order."""
        faiss = load_faiss()
        batch = len(queries) >= BLAS_BATCH
        faiss.cvar.distance_compute_blas_threshold = 1 if batch else NEVER
        answer: tuple[ScoreArray, RowArray]
        if mask is None:
            answer = self._fastest_flat(k).search(queries, k)
        elif batch:
            answer = self._scan_picked(queries, k, np.flatnonzero(mask))
        else:
            answer = self._flat.search(queries, k, params=faiss.SearchParameters(sel=bitmap(mask)))
        return answer

    def _fastest_flat(self, k: int) -> Any:
        faiss = load_faiss()
        if k > GPU_K or not faiss.get_num_gpus():
            return self._flat
        with self._lock:
            if self._gpu is None:
                self._gpu = faiss.index_cpu_to_all_gpus(self._flat)
            return self._gpu

    def _scan_picked(self, queries: Matrix, k: int, picked: RowArray) -> tuple[ScoreArray, RowArray]:
        """Scan some rows by copying them block by block: FAISS knows no matrix product under a selector."""
        faiss = load_faiss()
        vectors, size = self.vectors, max(1024, BLOCK_FLOATS // self.dim)
        heap = faiss.ResultHeap(len(queries), k, keep_max=True)
        for start in range(0, len(picked), size):
            block = picked[start : start + size]
            scores, places = faiss.knn(
                queries, vectors[block], min(k, len(block)), metric=faiss.METRIC_INNER_PRODUCT
            )
            heap.add_result(scores, block[places])
        heap.finalize()
        return heap.D, heap.I

    def _settle(
        self, queries: Matrix, k: int, mask: Mask | None, least_in: ScoreArray
    ) -> tuple[RowArray, ScoreArray]:
        """Rescore all rows that may reach the k-th score, however many are equal."""
        rows, scores = padding(len(queries), k)
        vectors, bar = self.vectors, least_in - self._rounding
        size = max(1, SCORED_FLOATS // len(vectors))
        for start in range(0, len(queries), size):
            near = queries[start : start + size] @ vectors.T >= bar[start : start + size, None]
            if mask is not None:
                near &= mask
            for i, row in enumerate(near, start):
                candidates = np.flatnonzero(row)[None]
                rows[i], scores[i] = _best(candidates, self._scores(queries[i : i + 1], candidates), k)
        return rows, scores

    def _scores(self, queries: Matrix, rows: RowArray) -> ScoreArray:
        """Return the inner products of each query with its rows [n, m]; −inf for row −1."""
        faiss = load_faiss()
        scores = np.empty(rows.shape, dtype=np.float32)
        faiss.fvec_inner_products_by_idx(
            faiss.swig_ptr(scores), faiss.swig_ptr(queries), self._flat.get_xb(), faiss.swig_ptr(rows),
            self.dim, *rows.shape,
        )  # fmt: skip
        return scores


def _with_reserve(k: int) -> int:
    """Return how many rows to fetch for k hits: a few more, so that rounding at the cut seldom matters."""
    return k + max(16, k // 8)


def _best(rows: RowArray, scores: ScoreArray, k: int) -> tuple[RowArray, ScoreArray]:
    """Sort each query's rows by falling score, equal ones by rising row, and cut to k."""
    best = np.arange(len(rows))[:, None], np.lexsort((rows, -scores))[:, :k]
    return rows[best], scores[best]


class _View:
    """Shows a flat index's memory to numpy, and keeps the index alive as long as the array."""

    def __init__(self, flat: Any) -> None:
        self._flat = flat
        self.__array_interface__ = {
            "shape": (flat.ntotal, flat.d),
            "typestr": np.dtype(np.float32).str,
            "data": (int(flat.get_xb()) if flat.ntotal else 0, True),
            "version": 3,
        }
