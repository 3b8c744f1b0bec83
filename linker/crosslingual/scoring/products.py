"""Scores of pairs of pages as products of two matrices: for all pairs in blocks, or for given pairs.

`Scores` holds several by name and computes them on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from indexes.cores import cores
from indexes.dtypes import Float32Array, Int64Array
from indexes.kernels.products import dots
from linker.crosslingual.scoring.candidates import PagePairScorer
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.sparse import csr, on_disk, release
from linker.crosslingual.scoring.split_product import SplitProduct

LEAST_MASS = 1e-6
ROWS = 1 << 14  # pairs of dense rows at a time
SparseOrDense = sp.csr_array | sp.csc_array | Float32Array


class Restrictable(Protocol):
    """A score of pairs of pages: all pairs in blocks, given pairs, and the pairs of some of the pages."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        ...

    def pairs(self, graph: Graph) -> Float32Array:
        """Return the scores of the pairs of a graph of this shape: float32 [pairs]."""
        ...

    def restrict(self, rows: Int64Array, columns: Int64Array) -> PagePairScorer:
        """Return a scorer of all pairs of the source pages `rows` (int64 [n']) and the target pages `columns` [m']."""
        ...


@dataclass(frozen=True, eq=False)
class WeightedProduct:
    """`left` [n, d] · `right` [d, m], divided by `source_mass` [n] + `target_mass` [m] if both are present."""

    left: SparseOrDense
    right: SparseOrDense
    source_mass: Float32Array | None = None
    target_mass: Float32Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        return self.left.shape[0], self.right.shape[1]

    @cached_property
    def _blocks(self) -> Blocks:
        return self.blocks()

    def blocks(self) -> Blocks:
        """Return the same scores in a form that is fast for all pairs and does not keep this object alive."""
        return Blocks((self._fast(self.left),), self.source_mass, self.target_mass)

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        return self._blocks.block(begin, end)

    def pairs(self, graph: Graph) -> Float32Array:
        """Return the scores of the pairs of a graph of this shape: float32 [pairs]."""
        rows, columns = graph.rows, graph.columns
        if sp.issparse(self.left) and sp.issparse(self.right):
            values = _sparse_dots(csr(self.left), csr(self.right.T), graph)
            self._release()
        else:
            values = _dense_dots(np.asarray(self.left), np.asarray(self.right).T, rows, columns)
        return _divide(values, graph, self.source_mass, self.target_mass)

    def on_disk(self) -> WeightedProduct:
        """Return the same product, with sparse matrices that take little memory while they are not in use."""
        left, right = on_disk(csr(self.left)), on_disk(csr(self.right.T))
        return replace(self, left=left, right=right.T)

    def transpose(self) -> WeightedProduct:
        """Return the same scores transposed: [m, n]."""
        return WeightedProduct(self.right.T, self.left.T, self.target_mass, self.source_mass)

    def restrict(self, rows: Int64Array, columns: Int64Array) -> Blocks:
        """Return the scorer of the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m'])."""
        everything = zip((rows, columns), self.shape, strict=True)
        if all(np.array_equal(part, np.arange(n)) for part, n in everything):
            return self.blocks()
        source = None if self.source_mass is None else self.source_mass[rows]
        target = None if self.target_mass is None else self.target_mass[columns]
        left = csr(self.left) if sp.issparse(self.left) else self.left
        return Blocks((self._fast(left[rows], columns),), source, target)

    def _fast(self, left: SparseOrDense, columns: Int64Array | None = None) -> SplitProduct | DenseProduct:
        if not (sp.issparse(left) and sp.issparse(self.right)):
            return DenseProduct(left, self.right if columns is None else self.right[:, columns])
        product = SplitProduct.of(csr(left), csr(self.right.T), selection=columns)
        self._release()
        return product

    def _release(self) -> None:
        release(self.left)
        release(self.right)


@dataclass(frozen=True, eq=False)
class DenseProduct:
    """`left` [n, d] · `right` [d, m], of which at least one is dense."""

    left: SparseOrDense
    right: SparseOrDense

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns of the product."""
        return self.left.shape[0], self.right.shape[1]

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the rows begin … end−1 of the product: float32 [end − begin, m]."""
        return np.asarray(self.left[begin:end] @ self.right, np.float32)


@dataclass(frozen=True, eq=False)
class Sum:
    """The sum of products [n, m], created one at a time, divided by `source_mass` [n] + `target_mass` [m]."""

    products: tuple[Callable[[], WeightedProduct], ...]
    source_mass: Float32Array
    target_mass: Float32Array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        return len(self.source_mass), len(self.target_mass)

    @cached_property
    def _blocks(self) -> Blocks:
        return self.restrict(np.arange(self.shape[0]), np.arange(self.shape[1]))

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        return self._blocks.block(begin, end)

    def pairs(self, graph: Graph) -> Float32Array:
        """Return the scores of the pairs of a graph of this shape: float32 [pairs]."""
        values = np.zeros(len(graph), np.float32)
        for make in self.products:
            values += make().pairs(graph)
        return _divide(values, graph, self.source_mass, self.target_mass)

    def restrict(self, rows: Int64Array, columns: Int64Array) -> Blocks:
        """Return the scorer of the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m'])."""
        parts = tuple(part for make in self.products for part in make().restrict(rows, columns).products)
        return Blocks(parts, self.source_mass[rows], self.target_mass[columns])


def _divide(
    values: Float32Array, graph: Graph, source_mass: Float32Array | None, target_mass: Float32Array | None
) -> Float32Array:
    """Divide the values of a graph's pairs by the masses of both pages, in place, if there are masses."""
    if source_mass is not None and target_mass is not None:
        values /= np.maximum(source_mass[graph.rows] + target_mass[graph.columns], LEAST_MASS)
    return values


@dataclass(frozen=True, eq=False)
class Blocks:
    """The sum of `products` [n, m], divided by `source_mass` [n] + `target_mass` [m] if both are present."""

    products: tuple[PagePairScorer, ...]
    source_mass: Float32Array | None
    target_mass: Float32Array | None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        return self.products[0].shape

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        values = self.products[0].block(begin, end)
        for product in self.products[1:]:
            values += product.block(begin, end)
        if self.source_mass is not None and self.target_mass is not None:
            for i, mass in enumerate(self.source_mass[begin:end]):
                values[i] /= np.maximum(mass + self.target_mass, LEAST_MASS)
        return values


def _sparse_dots(left: sp.csr_array, right: sp.csr_array, graph: Graph) -> Float32Array:
    """Return the products of the graph's rows of `left` [n, d] and `right` [m, d]: float32 [pairs].

    Most of the time goes into reading one row per pair, so it is read from the matrix that has the shorter rows.
    """
    if left.nnz * right.shape[0] >= right.nnz * left.shape[0]:
        return dots(left, right, graph.begin, graph.columns)
    values = np.empty(len(graph), np.float32)
    values[graph.by_column] = dots(right, left, graph.column_begin, graph.rows[graph.by_column])
    return values


def _dense_dots(
    left: Float32Array, right: Float32Array, rows: Int64Array, columns: Int64Array
) -> Float32Array:
    def compute(part: slice) -> Float32Array:
        return np.asarray(np.einsum("pd,pd->p", left[rows[part]], right[columns[part]]))

    with ThreadPoolExecutor(cores()) as pool:
        parts = pool.map(compute, [slice(i, i + ROWS) for i in range(0, len(rows), ROWS)])
        return np.concatenate([np.empty(0, np.float32), *parts])


class Scores(Mapping[str, Restrictable]):
    """Scores by name, each computed on demand; for many pages, they may not all fit into memory together."""

    def __init__(self, makers: Mapping[str, Callable[[], Restrictable]], *, keep: bool = False) -> None:
        """`makers`: a function without arguments for each name; `keep`: whether to keep their results."""
        self._makers = {name: cache(make) if keep else make for name, make in makers.items()}

    def __getitem__(self, name: str) -> Restrictable:
        return self._makers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __or__(self, other: Scores) -> Scores:
        """Return the scores of both, in this order."""
        return Scores({**self._makers, **other._makers})
