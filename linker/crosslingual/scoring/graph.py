"""The candidate graph: the pairs of pages worth a closer look, and statistics of a score over its rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from indexes.dtypes import BoolArray, Float32Array, Int64Array

NEAREST = 4  # neighbours in the margin


@dataclass(frozen=True, eq=False)
class Graph:
    """Pairs of source and target pages: `rows` and `columns` int64 [p], sorted by row and column, each pair once.

    `shape`: the number of source and of target pages, whose rows and columns the pairs name.
    """

    rows: Int64Array
    columns: Int64Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: Int64Array, columns: Int64Array, shape: tuple[int, int]) -> Graph:
        """Return the graph of pairs in any order, with repetitions: int64 [pairs] each."""
        keys = np.unique(np.asarray(rows, np.int64) * shape[1] + columns)
        return cls(keys // shape[1], keys % shape[1], shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __or__(self, other: Graph) -> Graph:
        """Return the union of two graphs of the same shape."""
        rows = np.concatenate((self.rows, other.rows))
        return Graph.of(rows, np.concatenate((self.columns, other.columns)), self.shape)

    def only(self, rows: BoolArray, columns: BoolArray) -> Graph:
        """Return the pairs of the source pages `rows` (bool [n]) and the target pages `columns` (bool [m])."""
        keep = rows[self.rows] & columns[self.columns]
        return Graph(self.rows[keep], self.columns[keep], self.shape)

    def around(self, rows: BoolArray) -> Graph:
        """Return the pairs of the target pages that `rows` (bool [n]) have pairs with: theirs and their rivals'."""
        columns = np.zeros(self.shape[1], np.bool_)
        columns[self.columns[rows[self.rows]]] = True
        return self.only(np.ones(self.shape[0], np.bool_), columns)

    @cached_property
    def begin(self) -> Int64Array:
        """First pair of each source page: int64 [n + 1]."""
        return _begins(self.rows, self.shape[0])

    @cached_property
    def by_column(self) -> Int64Array:
        """The pairs in the order of their columns, then rows: int64 [p]."""
        return np.argsort(self.columns, kind="stable")

    @cached_property
    def column_begin(self) -> Int64Array:
        """First place in `by_column` of each target page: int64 [m + 1]."""
        return np.concatenate(([0], np.cumsum(np.bincount(self.columns, minlength=self.shape[1]))))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of a score over the pairs of each row, or of each column, as numbers of each pair: float32 [p].

    `mean` and `deviation`, to which the deviation of all pairs contributes as one more pair, because a page may have
    few; `rival`, the best score of another pair of the same row; `near`, the mean of the row's four highest. Missing
    pairs count as 0.
    """

    mean: Float32Array
    deviation: Float32Array
    rival: Float32Array
    near: Float32Array


def row_statistics(graph: Graph, values: Float32Array) -> Statistics:
    """Return the statistics of a score (float32 [p]) over each row of the graph."""
    return _statistics(values, graph.begin)


def column_statistics(graph: Graph, values: Float32Array) -> Statistics:
    """Return the statistics of a score (float32 [p]) over each column of the graph."""
    ordered = _statistics(values[graph.by_column], graph.column_begin)
    parts = []
    for part in (ordered.mean, ordered.deviation, ordered.rival, ordered.near):
        back = np.empty_like(part)
        back[graph.by_column] = part
        parts.append(back)
    return Statistics(*parts)


def _statistics(values: Float32Array, begin: Int64Array) -> Statistics:
    sizes = np.diff(begin)
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return Statistics(values, values, values, values)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    segment = np.repeat(np.arange(len(sizes)), sizes)
    mean = np.bincount(segment, values) / sizes
    away = values - mean[segment]
    squares = np.bincount(segment, away * away)
    deviation = np.sqrt((squares + squares.sum() / len(values)) / (sizes + 1))
    top, holder = _top(values, starts, segment)
    rival = np.where(holder[segment] == np.arange(len(values)), top[1][segment], top[0][segment])
    near = top.mean(axis=0)
    return Statistics(
        mean[segment].astype(np.float32),
        deviation[segment].astype(np.float32),
        rival,
        near[segment],
    )


def _top(values: Float32Array, starts: Int64Array, segment: Int64Array) -> tuple[Float32Array, Int64Array]:
    """Return the highest scores of each segment, float32 [4, s], 0 where there are fewer, and the place of the best."""
    left = values.copy()
    top = np.zeros((NEAREST, len(starts)), np.float32)
    holder = np.zeros(len(starts), np.int64)
    for rank in range(NEAREST):
        best = np.maximum.reduceat(left, starts)
        hits = np.flatnonzero(left == best[segment])
        first = hits[np.diff(segment[hits], prepend=-1) > 0]
        if rank == 0:
            holder = first
        left[first] = -np.inf
        top[rank] = np.where(np.isfinite(best), best, 0)
    return top, holder


def _begins(rows: Int64Array, n: int) -> Int64Array:
    return np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
