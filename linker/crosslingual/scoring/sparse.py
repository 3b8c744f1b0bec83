"""Products of sparse matrices in the two ways that linking needs: of given pairs of rows, and added to dense rows.

Compiled (indexes/text/products.c) or, where that was not built, by scipy.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import scipy.sparse as sp

from indexes import native
from indexes.dtypes import Float32Array, Int64Array

PAIRS = 1 << 18  # products at a time without the compiled loop


def dots(left: sp.csr_array, right: sp.csr_array, begin: Int64Array, others: Int64Array) -> Float32Array:
    """Return the products of rows of `left` [n, d] and `right` [m, d]: float32 [pairs].

    Row i of `left` is multiplied by the rows `others[begin[i]:begin[i + 1]]` of `right`; `begin`: int64 [n + 1].
    Raises ValueError where there is no such row, and where a matrix names a column that it does not have.
    """
    _check("row", others, right.shape[0])
    if (
        left.shape[1] != right.shape[1]
        or begin[0] != 0
        or begin[-1] != len(others)
        or (np.diff(begin) < 0).any()
    ):
        raise ValueError(f"{len(others)} pairs do not fit {left.shape} and {right.shape}")
    library = native.load_products()
    if library is None:
        return _plain_dots(left, right, begin, others)
    out = np.empty(len(others), np.float32)
    wide = np.zeros(left.shape[1], np.float32)
    arrays = (begin, others.astype(np.int32), *_parts(left), *_parts(right), wide, out)
    native.call(library.dots, left.shape[0], *arrays)
    return out


def _plain_dots(
    left: sp.csr_array, right: sp.csr_array, begin: Int64Array, others: Int64Array
) -> Float32Array:
    rows = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    parts = [np.empty(0, np.float32)]
    for start in range(0, len(others), PAIRS):
        part = slice(start, start + PAIRS)
        parts.append(np.asarray(left[rows[part]].multiply(right[others[part]]).sum(axis=1)).ravel())
    return np.concatenate(parts).astype(np.float32)


@dataclass(frozen=True, eq=False)
class PostingLists:
    """A CSR matrix [d, m] as d posting lists, checked once and in the types that the compiled loop reads."""

    matrix: sp.csr_array
    _parts: tuple[np.ndarray, np.ndarray, np.ndarray]

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Self:
        """Return the lists of a matrix. Raises ValueError where it names a column that it does not have."""
        return cls(matrix, _parts(matrix))

    def add(self, left: sp.csr_array, out: Float32Array) -> None:
        """Add `left` [b, d] · the lists to `out`, C-contiguous float32 [b, m]. Raises ValueError as `of` does."""
        wanted = (left.shape[0], self.matrix.shape[1])
        if left.shape[1] != self.matrix.shape[0] or out.shape != wanted:
            raise ValueError(f"{left.shape} · {self.matrix.shape} cannot be added to {out.shape}")
        library = native.load_products()
        if library is not None:
            native.call(library.add_postings, 0, *out.shape, *_parts(left), *self._parts, out)
            return
        for row, (start, stop) in enumerate(pairwise(left.indptr.tolist())):
            if stop > start:
                out[row] += self.matrix[left.indices[start:stop]].T @ left.data[start:stop]


def _parts(matrix: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a CSR matrix in the types that the compiled loops read; copies only what differs.

    Raises ValueError where they would read or write outside an array.
    """
    begin, columns = matrix.indptr, matrix.indices
    _check("column", columns, matrix.shape[1])
    lengths = np.diff(begin)
    if len(begin) != matrix.shape[0] + 1 or begin[0] != 0 or (lengths < 0).any():
        raise ValueError("the rows of a sparse matrix do not follow one another")
    if not begin[-1] <= len(columns) == len(matrix.data):
        raise ValueError(f"a sparse matrix ends at {begin[-1]} of {len(columns)} values")
    return (
        np.ascontiguousarray(begin, np.int64),
        np.ascontiguousarray(columns, np.int32),
        np.ascontiguousarray(matrix.data, np.float32),
    )


def _check(what: str, numbers: np.ndarray, size: int) -> None:
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < size:
        raise ValueError(f"there is no {what} {numbers.max()} among {size} (from {numbers.min()})")
