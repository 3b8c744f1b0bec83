"""Products of sparse matrices in the two ways that linking needs: of given pairs of rows, and added to dense rows.

Compiled (indexes/text/products.c) or, where that was not built, by scipy.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from indexes import native
from indexes.dtypes import Float32Array, Int64Array

PAIRS = 1 << 18  # products at a time without the compiled loop


def dots(left: sp.csr_array, right: sp.csr_array, begin: Int64Array, others: Int64Array) -> Float32Array:
    """Return the products of rows of `left` [n, d] and `right` [m, d]: float32 [pairs].

    Row i of `left` is multiplied by the rows `others[begin[i]:begin[i + 1]]` of `right`; `begin`: int64 [n + 1].
    """
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


def add_postings(left: sp.csr_array, lists: sp.csr_array, out: Float32Array) -> None:
    """Add `left` [b, d] · `lists` [d, m] to `out`, C-contiguous float32 [b, m]."""
    library = native.load_products()
    if library is not None:
        native.call(library.add_postings, 0, *out.shape, *_parts(left), *_parts(lists), out)
        return
    for row, (start, stop) in enumerate(pairwise(left.indptr.tolist())):
        if stop > start:
            out[row] += lists[left.indices[start:stop]].T @ left.data[start:stop]


def _parts(matrix: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a CSR matrix in the types that the compiled loops read; copies only what differs."""
    return (
        np.ascontiguousarray(matrix.indptr, np.int64),
        np.ascontiguousarray(matrix.indices, np.int32),
        np.ascontiguousarray(matrix.data, np.float32),
    )
