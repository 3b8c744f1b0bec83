"""Functions that every index uses: checks of k and of dimensions, normalised rows, distinct numbers, padded results."""

import numpy as np

from indexes.dtypes import AnyArray
from indexes.interface import IndexesError, Matrix, RowArray, ScoreArray


def normalised(vectors: Matrix) -> Matrix:
    """Return `vectors` (float32 [n, d]) with rows scaled in float64 to length 1; zero rows stay zero."""
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
    """Raise IndexesError unless `dim`, the dimension of vectors, is at least 1."""
    if dim < 1:
        raise IndexesError(f"the dimension of vectors must be at least 1, not {dim}")


def distinct(numbers: AnyArray) -> AnyArray:
    """Return the distinct values of `numbers` [n], ascending.

    From numpy 2.3 on, `np.unique` hashes them, which takes a hundred times as long for a million and keeps the GIL.
    """
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def padding(n: int, k: int) -> tuple[RowArray, ScoreArray]:
    """Return a result without hits: rows (int64 [n, k], all −1) and scores (float32 [n, k], all −inf)."""
    return np.full((n, k), -1, dtype=np.int64), np.full((n, k), -np.inf, dtype=np.float32)
