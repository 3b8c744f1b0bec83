"""Exact search by FAISS, on the CPU or on GPUs: used if the certified scan cannot run or does not pay off.

FAISS's float32 or float16 scores only select candidates; every row within rounding error of the k-th is scored
exactly.
"""

import contextlib
import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from indexes import kernels
from indexes.arrays import padding
from indexes.interface import Mask, Matrix, RowArray, ScoreArray
from indexes.vectors.faiss_files import bitmap, load_faiss
from indexes.vectors.stored import StoredVectors, faiss_loaded

BUFFER_BYTES = 1 << 25  # bytes of products held in memory at a time
# from this many queries on, a matrix product beats one scan per query (measured for d = 64 … 1024)
BLAS_BATCH = 5
NEVER = 2**31 - 1  # a threshold that no number of queries reaches
BLOCK_FLOATS = 1 << 20  # floats copied at a time if a filter selects rows: 4 MiB, about a CPU cache
SCORED_FLOATS = 1 << 24  # maximum number of scores in memory if all rows are scored: 64 MiB
GPU_K = 2048  # FAISS's limit of k on the GPU


def exact_scores(vectors: Matrix, queries: Matrix, rows: RowArray) -> ScoreArray:
    """Return each query's dot products with its `rows` [n, m] of `vectors`, float32 [n, m]; −inf for row −1."""
    out = np.empty(rows.shape, dtype=np.float32)
    library, (count, width) = kernels.load("scan"), rows.shape
    if library is not None:
        rows, queries = np.ascontiguousarray(rows), np.ascontiguousarray(queries)
        kernels.call(library.scores, vectors, vectors.shape[1], queries, count, width, rows, out)
        return out
    step = max(1, BUFFER_BYTES // (8 * vectors.shape[1] * max(1, width)))
    for start in range(0, count, step):
        part = slice(start, start + step)
        products = vectors[rows[part]].astype(np.float64)
        products *= queries[part, None]
        out[part] = products.sum(axis=2)
    out += np.float32(0)  # no −0
    out[rows < 0] = -np.inf
    return out


def with_reserve(k: int) -> int:
    """Return how many rows to fetch for k hits: a few more than k, so that rounding at rank k seldom matters."""
    return k + max(16, k // 8)


def best(rows: RowArray, scores: ScoreArray, k: int) -> tuple[RowArray, ScoreArray]:
    """Return the top k of `rows` and `scores` [n, m] per query, [n, k]: by descending score, then ascending row."""
    first = np.arange(len(rows))[:, None], np.lexsort((rows, -scores))[:, :k]
    return rows[first], scores[first]


class BlasThreshold:
    """FAISS's process-wide `distance_compute_blas_threshold`; threads that need one value share it, others wait."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._users = 0
        self._value = self._original = 0

    @contextlib.contextmanager
    def at(self, value: int) -> Iterator[None]:
        """Set the threshold to `value` within the context."""
        settings = load_faiss().cvar
        with self._turn:
            self._turn.wait_for(lambda: not self._users or self._value == value)
            if not self._users:
                self._original, self._value = settings.distance_compute_blas_threshold, value
                settings.distance_compute_blas_threshold = value
            self._users += 1
        try:
            yield
        finally:
            with self._turn:
                self._users -= 1
                if not self._users:
                    settings.distance_compute_blas_threshold = self._original
                self._turn.notify_all()


BLAS_THRESHOLD = BlasThreshold()


class FlatScan:
    """ExactScan over unit vectors by FAISS; by numpy for a small search before FAISS has been imported."""

    def __init__(self, stored: StoredVectors) -> None:
        self._stored = stored
        self._gpu: Any = None
        self._lock = threading.Lock()

    def search(
        self, vectors: Matrix, queries: Matrix, k: int, mask: Mask | None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k]; see ExactScan."""
        allowed = len(vectors) if mask is None else int(np.count_nonzero(mask))
        fetch = min(with_reserve(k), allowed)
        rounding = vectors.shape[1] * 2.0**-23
        if len(queries) * len(vectors) <= SCORED_FLOATS and len(queries) < BLAS_BATCH and not faiss_loaded():
            rough, rows = _scan_by_numpy(vectors, queries, fetch, mask)
        elif mask is None and fetch <= GPU_K and self.on_gpu():
            rounding += _half_rounding(vectors.shape[1])
            # float16 rounds more coarsely, so more candidates are needed, and the scan is cheaper.
            fetch = min(4 * fetch, GPU_K, allowed)
            with self._lock:  # FAISS's indexes on GPUs serve one thread at a time
                rough, rows = self._scan(self._copied_to_gpus(), vectors, queries, fetch, mask)
        else:
            rough, rows = self._scan(self._stored.flat, vectors, queries, fetch, mask)
        rows, scores = best(rows, exact_scores(vectors, queries, rows), k)
        if fetch < allowed:
            doubtful = np.flatnonzero(scores[:, -1] <= rough[:, -1] + rounding)
            bar = scores[doubtful, -1] - vectors.shape[1] * 2.0**-23
            if len(doubtful):
                rows[doubtful], scores[doubtful] = _settle(vectors, queries[doubtful], k, mask, bar)
        return rows, scores

    @property
    def pays(self) -> bool:
        """Always true: there is no cheaper alternative."""
        return True

    def on_gpu(self) -> bool:
        """Return whether FAISS has a GPU."""
        return bool(load_faiss().get_num_gpus())

    def _copied_to_gpus(self) -> Any:
        """Return a float16 copy of the index on all GPUs."""
        faiss = load_faiss()
        if self._gpu is None or self._gpu.ntotal != len(self._stored):
            options = faiss.GpuMultipleClonerOptions()
            options.useFloat16, options.shard = True, True
            self._gpu = faiss.index_cpu_to_all_gpus(self._stored.flat, co=options)
        return self._gpu

    def _scan(
        self, scanner: Any, vectors: Matrix, queries: Matrix, k: int, mask: Mask | None
    ) -> tuple[ScoreArray, RowArray]:
        faiss = load_faiss()
        batch = len(queries) >= BLAS_BATCH
        answer: tuple[ScoreArray, RowArray]
        with BLAS_THRESHOLD.at(1 if batch else NEVER):
            if mask is None:
                answer = scanner.search(queries, k)
            elif batch:
                answer = _scan_picked(vectors, queries, k, np.flatnonzero(mask))
            else:
                answer = scanner.search(queries, k, params=faiss.SearchParameters(sel=bitmap(mask)))
        return answer


def _half_rounding(dim: int) -> float:
    """Return an upper bound on the error of two unit vectors' dot product in float16 (subnormal values err by 2⁻²⁵)."""
    lost = 2.0**-11 + math.sqrt(dim) * 2.0**-25
    return 2 * lost + lost * lost


def _scan_by_numpy(
    vectors: Matrix, queries: Matrix, k: int, mask: Mask | None
) -> tuple[ScoreArray, RowArray]:
    scores = queries @ vectors.T
    if mask is not None:
        scores[:, ~mask] = -np.inf
    rows = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    rough = np.take_along_axis(scores, rows, axis=1)
    order = np.argsort(-rough, axis=1)
    return np.take_along_axis(rough, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _scan_picked(vectors: Matrix, queries: Matrix, k: int, picked: RowArray) -> tuple[ScoreArray, RowArray]:
    """Return the top k scores and rows among `picked` (int64 [m]), both [n, k].

    The rows are copied block by block, because FAISS computes no matrix product with a selector.
    """
    faiss = load_faiss()
    size = max(1024, BLOCK_FLOATS // vectors.shape[1])
    heap = faiss.ResultHeap(len(queries), k, keep_max=True)
    for start in range(0, len(picked), size):
        block = picked[start : start + size]
        scores, positions = faiss.knn(
            queries, vectors[block], min(k, len(block)), metric=faiss.METRIC_INNER_PRODUCT
        )
        heap.add_result(scores, block[positions])
    heap.finalize()
    return heap.D, heap.I


def _settle(
    vectors: Matrix, queries: Matrix, k: int, mask: Mask | None, bar: ScoreArray
) -> tuple[RowArray, ScoreArray]:
    """Return the top k rows and scores, both [n, k], by scoring every row whose rough score reaches `bar` [n]."""
    rows, scores = padding(len(queries), k)
    size = max(1, SCORED_FLOATS // len(vectors))
    for start in range(0, len(queries), size):
        near = queries[start : start + size] @ vectors.T >= bar[start : start + size, None]
        if mask is not None:
            near &= mask
        for i, row in enumerate(near, start):
            candidates = np.flatnonzero(row)[None]
            rows[i], scores[i] = best(candidates, exact_scores(vectors, queries[i : i + 1], candidates), k)
    return rows, scores
