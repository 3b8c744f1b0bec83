"""Checks and shapes that every index shares: k, dimensions, unit rows, padding of short answers."""

from __future__ import annotations

import numpy as np

from indexes.interface import (
    IndexesError,
    Matrix,
    RowArray,
    ScoreArray,
)


def normalised(vectors: Matrix) -> Matrix:
    """Return rows [n, d] of Euclidean length 1; zero rows stay zero. No float32 value over- or underflows."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    lengths[lengths == 0] = 1
    out = np.empty(vectors.shape, dtype=np.float32)
    np.divide(vectors, lengths[:, None], out=out, casting="same_kind")
    return out


def check_k(k: int) -> None:
    """Raise IndexesError unless k is at least 1."""
    if k < 1:
        raise IndexesError(f"k must be at least 1, not {k}")


def check_dim(dim: int) -> None:
    """Raise IndexesError unless `dim` can be the dimension of vectors."""
    if dim < 1:
        raise IndexesError(f"the dimension of vectors must be at least 1, not {dim}")


def padding(n: int, k: int) -> tuple[RowArray, ScoreArray]:
    """Return an answer [n, k] that holds no hit: rows −1, scores −inf."""
    return np.full((n, k), -1, dtype=np.int64), np.full((n, k), -np.inf, dtype=np.float32)
