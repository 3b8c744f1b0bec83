"""Sparse float32 matrices: products with one thread per core, changed values, and storage in a mapped file."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from indexes.cores import cores
from indexes.disk.reading import give_back, mapping_of
from indexes.dtypes import Float32Array
from linker.crosslingual.pages.chunks import in_order
from linker.crosslingual.pages.pages import narrow

MANY_ROWS = 10_000  # minimum number of rows worth a thread
PART = 1 << 22  # values at a time
Floats = npt.NDArray[np.floating]


def times(left: sp.csr_array, right: sp.csr_array | sp.csc_array) -> sp.csr_array:
    """Return `left` [n, d] · `right` [d, m], float32 CSR; many rows are divided among threads: scipy uses only one.

    The arrays have room for every pair of matching values, but the system allocates memory only for the part that is
    written; joining the parts of a product in other arrays would take twice the memory.
    """
    left, factor = csr(left), csr(right)  # a product of integers and float32 would be float64
    if left.shape[0] <= MANY_ROWS:
        return csr(left @ factor)
    firsts = range(0, left.shape[0], MANY_ROWS)
    sizes = np.diff(factor.indptr)
    room = sum(int(sizes[left[i : i + MANY_ROWS].indices].sum()) for i in firsts)
    data, columns = np.empty(room, np.float32), np.empty(room, np.int32)
    begin = np.zeros(left.shape[0] + 1, np.int64)
    with ThreadPoolExecutor(cores()) as pool:
        parts = in_order(pool, lambda i: left[i : i + MANY_ROWS] @ factor, firsts, ahead=cores())
        for i, part in zip(firsts, parts, strict=True):
            places = slice(begin[i], begin[i] + part.nnz)
            data[places], columns[places] = part.data, part.indices
            begin[i + 1 : i + 1 + part.shape[0]] = begin[i] + part.indptr[1:]
    return sp.csr_array(
        (data[: begin[-1]], columns[: begin[-1]], narrow(begin)), shape=(left.shape[0], factor.shape[1])
    )


def on_disk(matrix: sp.csr_array) -> sp.csr_array:
    """Return a float32 matrix whose values and columns are stored in an unnamed mapped file.

    The system drops the pages of such a file if it needs their memory, and so does `release`. If the temporary
    directory has no room for it, the matrix stays in memory.
    """
    try:
        with TemporaryFile() as file:
            np.asarray(matrix.data, np.float32).tofile(file)
            np.asarray(matrix.indices, np.int32).tofile(file)
            mapping = mmap(file.fileno(), 0, access=ACCESS_READ)
    except (OSError, ValueError):  # a full disk, or nothing to map
        return matrix
    data = np.frombuffer(mapping, np.float32, matrix.nnz)
    columns = np.frombuffer(mapping, np.int32, matrix.nnz, data.nbytes)
    return sp.csr_array((data, columns, matrix.indptr), shape=matrix.shape)


def release(matrix: Any) -> None:
    """Let the system reclaim the memory of a matrix that is `on_disk`; it is read again when needed."""
    mapping = mapping_of(matrix.data) if hasattr(matrix, "indptr") else None
    if mapping is not None:
        give_back(mapping)


def csr(matrix: Any) -> sp.csr_array:
    """Return the matrix as float32 CSR; the transpose of a CSC matrix is not copied."""
    result: sp.csr_array = sp.csr_array(matrix).astype(np.float32, copy=False)
    return result


def ones(matrix: sp.csr_array) -> sp.csr_array:
    """Return the matrix [n, v] with every stored value replaced by 1."""
    values = np.ones(len(matrix.data), np.float32)
    return sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def unit_rows(matrix: sp.csr_array) -> sp.csr_array:
    """Return the matrix [n, v] with every row scaled to unit length; empty rows stay empty."""
    norms = np.sqrt(np.asarray(map_values(matrix, np.square).sum(axis=1), np.float32)).ravel()
    return scale_rows(matrix, 1 / np.maximum(norms, 1e-12))


def stochastic(translations: sp.csr_array) -> sp.csr_array:
    """Return the matrix [v source, v target] with every row scaled to sum to one; empty rows stay empty."""
    return scale_rows(
        translations, 1 / np.maximum(np.asarray(translations.sum(axis=1), np.float32).ravel(), 1e-12)
    )


def scale_columns(matrix: sp.csr_array, factors: Floats) -> sp.csr_array:
    """Return the matrix [n, v] with each column multiplied by its factor in `factors` [v]."""
    return in_parts(matrix, lambda data, rows, places: data * factors[matrix.indices[places]])


def scale_rows(matrix: sp.csr_array, factors: Floats) -> sp.csr_array:
    """Return the matrix [n, v] with each row multiplied by its factor in `factors` [n]."""
    return by_rows(matrix, factors, lambda data, own: data * own)


def map_values(matrix: sp.csr_array, function: Callable[[Float32Array], Floats]) -> sp.csr_array:
    """Return the matrix [n, v] with `function` applied to its values."""
    return in_parts(matrix, lambda data, rows, places: function(data))


def by_rows(
    matrix: sp.csr_array,
    numbers: Floats,
    function: Callable[[Float32Array, Floats], Floats],
) -> sp.csr_array:
    """Return the matrix [n, v] of `function` of each value and its row's entry in `numbers` [n]."""
    sizes = np.diff(matrix.indptr)
    return in_parts(matrix, lambda data, rows, places: function(data, np.repeat(numbers[rows], sizes[rows])))


def in_parts(matrix: sp.csr_array, function: Callable[[Float32Array, slice, slice], Floats]) -> sp.csr_array:
    """Return the matrix with its values replaced by `function`, which is called for some rows at a time.

    The function gets the values of these rows, the slice of rows, and the slice of the values. Temporary arrays of all
    the values of a large matrix would take several times its memory.
    """
    data, begins = np.empty(len(matrix.data), np.float32), matrix.indptr
    first = np.searchsorted(begins, np.arange(0, begins[-1], PART))
    for start, stop in pairwise(np.unique(np.append(first, len(begins) - 1)).tolist()):
        places = slice(begins[start], begins[stop])
        data[places] = function(matrix.data[places].astype(np.float32), slice(start, stop), places)
    return sp.csr_array((data, matrix.indices, begins), shape=matrix.shape)
