"""Inner products with given rows, and the best of them, used by every kind of vector index."""

from __future__ import annotations

import numpy as np

from indexes import kernels
from indexes.interface import Matrix, RowArray, ScoreArray

BUFFER_BYTES = 1 << 25  # bytes of products held in memory at a time


def scores(vectors: Matrix, queries: Matrix, rows: RowArray) -> ScoreArray:
    """Return the inner products, float32 [n, m], of each query with its rows; −inf for row −1.

    `vectors` is float32 [rows, d], `queries` float32 [n, d], `rows` int64 [n, m].
    """
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
