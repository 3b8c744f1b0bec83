"""Vectors from a file written by FAISS, read without FAISS, which trusts its files.

Only kinds that hold the vectors, or decodable codes, are supported: flat, scalar-quantised and product-quantised
indexes, also in cells (IVF), below a graph (HNSW), behind a transformation or with their own ids. Every size is
compared with the file before it is used. The layout is that of faiss/impl/index_write.cpp.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from indexes.interface import Matrix
from indexes.vectors.faiss_checks import File, WrongError, cell_sizes, require
from linker.corpora.vectors.faiss_codes import Decoder, empty, plain, product, scalar, transformation

FLAT = {b"IxFI": "IndexFlatIP", b"IxF2": "IndexFlatL2", b"IxFl": "IndexFlat"}
MAPPED = {b"IxMp": "IndexIDMap", b"IxM2": "IndexIDMap2"}
GRAPHS = {b"IHNf": "IndexHNSWFlat", b"IHNs": "IndexHNSWSQ", b"IHNp": "IndexHNSWPQ"}
CELLS = {b"IwFl": "IndexIVFFlat", b"IwSq": "IndexIVFScalarQuantizer", b"IwPQ": "IndexIVFPQ"}
CODES = {b"IxSQ": "IndexScalarQuantizer", b"IxPq": "IndexPQ"}
NAMES = FLAT | MAPPED | GRAPHS | CELLS | CODES | {b"IxPT": "IndexPreTransform"}
MOST_DIM, MOST_CHAIN = 1 << 16, 16
DEEPEST = 6  # maximum depth of nested indexes
METRICS = {0: "inner product", 1: "L2"}  # any other metric is followed by its argument
HASHED = 2  # the kind of direct map that is stored as a table of pairs


@dataclass(frozen=True)
class FaissVectors:
    """The vectors of a FAISS index, float32 [n, dim], and how they were stored.

    `numbers` are the ids of an IndexIDMap, `name` is the class that holds the vectors. `exact`: whether they are the
    vectors that were added.
    """

    matrix: Matrix
    name: str
    metric: str
    exact: bool
    numbers: list[int] | None = None


def parse(data: Any) -> FaissVectors:
    """Return the vectors in the bytes of a FAISS file. Raises WrongError if they are damaged or of another kind."""
    file = File(data)
    found = _index(file, 0)
    file.end()
    require(len(found.matrix), "it holds no vectors")
    return found


def _index(file: File, depth: int) -> FaissVectors:
    require(depth < DEEPEST, "its indexes are nested too deeply")
    kind = file.take(4, "|u1").tobytes()
    if kind not in NAMES:
        raise WrongError(f"it is not a FAISS file of a supported kind (it begins with {kind!r})")
    dim, rows, metric = _header(file)
    if kind in MAPPED:
        return _mapped(file, rows, depth)
    if kind in FLAT:
        matrix, exact = _matrix(file.vector("<f4"), rows, dim), True
    elif kind in GRAPHS:
        matrix, exact = _below_graph(file, rows, dim, depth)
    elif kind in CELLS:
        matrix, exact = _in_cells(file, kind, rows, dim, depth), kind == b"IwFl"
    elif kind in CODES:
        matrix, exact = _coded(file, kind, rows, dim), False
    else:
        matrix, exact = _transformed(file, rows, dim, depth), False
    return FaissVectors(matrix, NAMES[kind], metric, exact)


def _header(file: File) -> tuple[int, int, str]:
    dim, rows = file.one("<i4"), file.one("<i8")
    file.take(2, "<i8")  # unused
    trained, metric = file.one("|u1"), file.one("<i4")
    if metric not in METRICS:
        file.take(1, "<f4")
    require(1 <= dim <= MOST_DIM, f"it has {dim} dimensions; 1 to {MOST_DIM:,} are supported")
    require(rows >= 0 and trained in (0, 1), "its header is damaged")
    return dim, rows, METRICS.get(metric, f"metric {metric}")


def _matrix(values: Any, rows: int, dim: int) -> Matrix:
    require(len(values) == rows * dim, "its vectors do not match its header")
    matrix: Matrix = values.reshape(rows, dim)
    return matrix


def _inner(file: File, rows: int, dim: int, depth: int) -> FaissVectors:
    """Return the index nested in another one. Raises WrongError unless its shape is [rows, dim]."""
    inner = _index(file, depth + 1)
    require(inner.matrix.shape == (rows, dim), "an index inside it has another size")
    return inner


def _mapped(file: File, rows: int, depth: int) -> FaissVectors:
    inner = _index(file, depth + 1)
    numbers = file.vector("<i8")
    require(len(numbers) == rows == len(inner.matrix), "it does not hold one id per vector")
    return FaissVectors(inner.matrix, inner.name, inner.metric, inner.exact, numbers.tolist())


def _below_graph(file: File, rows: int, dim: int, depth: int) -> tuple[Matrix, bool]:
    for kind in ("<f8", "<i4", "<i4", "<i8", "<i4"):  # skip the graph
        file.vector(kind)
    file.take(5, "<i4")
    inner = _inner(file, rows, dim, depth)
    return inner.matrix, inner.exact


def _coded(file: File, kind: bytes, rows: int, dim: int) -> Matrix:
    decoder = scalar(file, dim) if kind == b"IxSQ" else product(file, dim)
    codes = file.vector("|u1")
    require(len(codes) == rows * decoder.size, "its codes do not match its header")
    if kind == b"IxPq":
        file.take(9, "|u1")  # skip the settings for searching
    matrix = empty(file, rows, dim)
    decoder.into(matrix, range(rows), codes.reshape(rows, decoder.size))
    return matrix


def _transformed(file: File, rows: int, dim: int, depth: int) -> Matrix:
    count = file.one("<i4")
    require(0 <= count <= MOST_CHAIN, "it has too many transformations")
    chain = [transformation(file) for _ in range(count)]
    sizes = [dim, *(each.output for each in chain)]
    require([each.input for each in chain] == sizes[:-1], "its transformations do not match each other")
    matrix = _inner(file, rows, sizes[-1], depth).matrix
    with np.errstate(all="ignore"):  # rows that are not finite are reported later
        for each in reversed(chain):
            empty(file, rows, each.input)
            matrix = each.undo(matrix)
    return matrix


def _in_cells(file: File, kind: bytes, rows: int, dim: int, depth: int) -> Matrix:
    cells = file.one("<u8")
    file.take(1, "<u8")  # skip the number of cells that a search visits
    centroids = _inner(file, cells, dim, depth).matrix
    _skip_direct_map(file)
    decoder, is_residual = _cell_decoder(file, kind, dim)
    file.expect(b"ilar")
    require(file.one("<u8") == cells and file.one("<u8") == decoder.size, "its cells do not match its header")
    sizes = cell_sizes(file, cells)
    require(sum(size for _, size in sizes) == rows, "its cells do not hold all vectors")
    matrix, seen = empty(file, rows, dim), np.zeros(rows, bool)
    for cell, size in sizes:
        codes, numbers = file.take(size * decoder.size, "|u1"), file.take(size, "<i8")
        require(numbers.min() >= 0 and numbers.max() < rows, "its ids are not the numbers of its vectors")
        seen[numbers] = True
        decoder.into(
            matrix, numbers, codes.reshape(size, decoder.size), centroids[cell] if is_residual else None
        )
    require(seen.all(), "it holds a vector twice")
    return matrix


def _skip_direct_map(file: File) -> None:
    kind = file.one("|u1")
    require(kind in (0, 1, 2), "its direct map is damaged")
    file.vector("<i8")
    if kind == HASHED:
        file.vector("<i8,<i8")


def _cell_decoder(file: File, kind: bytes, dim: int) -> tuple[Decoder, bool]:
    """Return the decoder for vectors in cells, and whether they are differences from the cell's centroid."""
    if kind == b"IwFl":
        return plain(dim), False
    if kind == b"IwSq":
        decoder = scalar(file, dim)
        size, is_residual = file.one("<u8"), file.one("|u1")
    else:
        is_residual, size = file.one("|u1"), file.one("<u8")
        decoder = product(file, dim)
    require(size == decoder.size and is_residual in (0, 1), "its codes have the wrong size")
    return decoder, bool(is_residual)
