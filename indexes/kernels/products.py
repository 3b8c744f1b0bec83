"""Products of sparse matrices in two forms: for given pairs of rows, and added to dense rows.

Compiled (products.c) or, if that was not built, by scipy.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import scipy.sparse as sp

from indexes import kernels
from indexes.cores import cores
from indexes.dtypes import Float32Array, Int64Array

PAIRS = 1 << 18  # pairs multiplied at a time without the compiled loop
TILE = 1 << 16  # columns per tile; half or twice as many are no faster
MANY = 1 << 20  # minimum number of pairs for which a thread pays off


@dataclass(frozen=True, eq=False)
class PostingLists:
    """The right factor of a product that is added to dense rows: d posting lists over m columns, checked once.

    The lists are cut into `tiles` of TILE columns each, because the CPU cache holds only part of a dense row.
    """

    tiles: tuple[Factor, ...]
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Self:
        """Return the rows of `matrix` [d, m] as posting lists. Raises ValueError if an index is out of bounds."""
        _parts(matrix)
        begins = range(0, max(matrix.shape[1], 1), TILE)
        return cls.of_tiles([sp.csr_array(matrix[:, i : i + TILE]) for i in begins], matrix.shape)

    @classmethod
    def of_tiles(cls, tiles: Sequence[sp.csr_array], shape: tuple[int, int]) -> Self:
        """Return the posting lists of a matrix of this shape, which is given as tiles of adjacent columns."""
        return cls(tuple(Factor.of(tile) for tile in tiles), shape)

    def add_to(self, out: Float32Array, left: sp.csr_array) -> None:
        """Add `left` [b, d] · the matrix to `out`, C-contiguous float32 [b, m].

        Raises ValueError if the shapes do not match or an index in `left` is out of bounds.
        """
        if left.shape[1] != self.shape[0] or out.shape != (left.shape[0], self.shape[1]):
            raise ValueError(f"shapes do not match: {left.shape} · {self.shape}, to be added to {out.shape}")
        library = kernels.load("products")
        parts = _parts(left)
        begin = 0
        for tile in self.tiles:
            part = out[:, begin:]
            begin += tile.matrix.shape[1]
            if library is not None:
                kernels.call(library.add_postings, 0, *out.shape, *parts, *tile.parts, part)
                continue
            for row, (start, stop) in enumerate(pairwise(left.indptr.tolist())):
                lists = tile.matrix[left.indices[start:stop]]
                part[row, : lists.shape[1]] += lists.T @ left.data[start:stop]


@dataclass(frozen=True, eq=False)
class Factor:
    """A CSR matrix, checked once and in the types that the compiled loops read (`parts`)."""

    matrix: sp.csr_array
    parts: tuple[np.ndarray, np.ndarray, np.ndarray]

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Self:
        """Return the factor. Raises ValueError if an index in the matrix is out of bounds."""
        return cls(matrix, _parts(matrix))

    def dots(self, left: sp.csr_array, begin: Int64Array, others: Int64Array) -> Float32Array:
        """Return the dot products of pairs of rows, of `left` [n, d] and of the matrix [m, d]: float32 [pairs].

        Row i of `left` is multiplied by each of the rows `others[begin[i]:begin[i + 1]]` of the matrix; `begin` is
        int64 [n + 1]. Many pairs are computed in one thread per core. Raises ValueError like `of`, and if a row does
        not exist.
        """
        _check("row", others, self.matrix.shape[0])
        starts = len(begin) == left.shape[0] + 1 and begin[0] == 0 and begin[-1] == len(others)
        if left.shape[1] != self.matrix.shape[1] or not starts or (np.diff(begin) < 0).any():
            shapes = f"{left.shape} and {self.matrix.shape}"
            raise ValueError(f"`begin` and {len(others)} pairs do not match matrices of shapes {shapes}")
        library = kernels.load("products")
        if library is None:
            return _plain_dots(left, self.matrix, begin, others)
        out = np.empty(len(others), np.float32)
        places, (left_begin, *values) = others.astype(np.int32), _parts(left)

        def rows(first: int, last: int) -> None:
            wide = np.zeros(left.shape[1], np.float32)
            parts = (begin[first : last + 1], places, left_begin[first : last + 1], *values, *self.parts)
            kernels.call(library.dots, last - first, *parts, wide, out)

        jobs = min(cores(), len(others) // MANY) or 1
        edges = np.searchsorted(begin, np.linspace(0, len(others), jobs + 1)[1:-1]).tolist()
        if jobs == 1:
            rows(0, left.shape[0])
            return out
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(rows, [0, *edges], [*edges, left.shape[0]]))
        return out


def dots(left: sp.csr_array, right: sp.csr_array, begin: Int64Array, others: Int64Array) -> Float32Array:
    """Return the dot products of pairs of rows of `left` [n, d] and `right` [m, d], as `Factor.dots` does."""
    return Factor.of(right).dots(left, begin, others)


def _plain_dots(
    left: sp.csr_array, right: sp.csr_array, begin: Int64Array, others: Int64Array
) -> Float32Array:
    rows = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    parts = [np.empty(0, np.float32)]
    for start in range(0, len(others), PAIRS):
        part = slice(start, start + PAIRS)
        parts.append(np.asarray(left[rows[part]].multiply(right[others[part]]).sum(axis=1)).ravel())
    return np.concatenate(parts).astype(np.float32)


def _parts(matrix: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a CSR matrix in the types that the compiled loops read, copying only arrays of other types.

    Raises ValueError if the loops would read or write outside an array.
    """
    begin, columns = matrix.indptr, matrix.indices
    _check("column", columns, matrix.shape[1])
    if len(begin) != matrix.shape[0] + 1 or begin[0] != 0 or (np.diff(begin) < 0).any():
        raise ValueError("invalid CSR matrix: `indptr` must start at 0, ascend, and have rows + 1 entries")
    if begin[-1] > min(len(columns), len(matrix.data)):
        raise ValueError(f"invalid CSR matrix: `indptr` ends at {begin[-1]}, for {len(columns)} values")
    return (
        np.ascontiguousarray(begin, np.int64),
        np.ascontiguousarray(columns, np.int32),
        np.ascontiguousarray(matrix.data, np.float32),
    )


def _check(what: str, numbers: np.ndarray, size: int) -> None:
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < size:
        raise ValueError(f"expected {what}s from 0 to {size - 1}, got {numbers.min()} to {numbers.max()}")
