"""The candidate graph: the pairs of pages worth a closer look, and statistics of a score over its rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from indexes.dtypes import BoolArray, Float32Array, Int64Array

NEAREST = 4  # number of nearest neighbours whose scores are averaged in the margin


@dataclass(frozen=True, eq=False)
class Graph:
    """Pairs of source and target pages: `rows` and `columns` int64 [p], sorted by row and column, each pair once.

    `shape`: the numbers of source and target pages, to whose rows and columns the pairs refer.
    """

    rows: Int64Array
    columns: Int64Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: Int64Array, columns: Int64Array, shape: tuple[int, int]) -> Graph:
        """Return the graph of pairs that are given in any order and may be repeated: int64 [pairs] each."""
        keys = np.sort(np.asarray(rows, np.int64) * shape[1] + columns)
        # np.unique builds a hash table, which takes a hundred times as long.
        keys = keys[np.diff(keys, prepend=-1) > 0]
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
        """Return all pairs whose target page is also paired with one of `rows` (bool [n]): theirs and their rivals."""
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
    def row_segments(self) -> Stretches:
        """The pairs, grouped by source page; pages without pairs are left out."""
        return Stretches.between(self.begin)

    @cached_property
    def column_segments(self) -> Stretches:
        """The pairs, ordered by column and grouped by target page; pages without pairs are left out."""
        return Stretches.between(self.column_begin)

    @cached_property
    def column_begin(self) -> Int64Array:
        """First position of each target page in `by_column`: int64 [m + 1]."""
        return np.append(0, np.cumsum(np.bincount(self.columns, minlength=self.shape[1])))


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """Statistics of a score over the pairs of each row, or of each column, as one value per pair: float32 [p].

    `values` [p]: the scores, grouped by row or column into `segments`; `order` int64 [p]: each one's position among the
    graph's pairs, None if it is the same. Each statistic is computed on demand.
    """

    values: Float32Array
    segments: Stretches
    order: Int64Array | None = None

    @property
    def mean(self) -> Float32Array:
        """The mean score of the pair's row."""
        return self._moments[0]

    @property
    def deviation(self) -> Float32Array:
        """The row's standard deviation, smoothed by one pseudo-pair from all pairs, because a row may have few."""
        return self._moments[1]

    @property
    def rival(self) -> Float32Array:
        """The best score of another pair of the same row."""
        return self._highest[0]

    @property
    def near(self) -> Float32Array:
        """The mean of the row's four highest scores; missing pairs count as 0."""
        return self._highest[1]

    @cached_property
    def _moments(self) -> tuple[Float32Array, Float32Array]:
        values, segment, sizes = self.values, self.segments.of, self.segments.sizes
        mean = np.bincount(segment, values, len(sizes)) / sizes
        away = values - mean[segment]
        squares = np.bincount(segment, away * away, len(sizes))
        deviation = np.sqrt((squares + squares.sum() / max(len(values), 1)) / (sizes + 1))
        return self._placed(mean.astype(np.float32)[segment]), self._placed(
            deviation.astype(np.float32)[segment]
        )

    @cached_property
    def _highest(self) -> tuple[Float32Array, Float32Array]:
        values, segment = self.values, self.segments.of
        if not len(values):
            return values, values
        top, holder = _top(values, self.segments.starts, segment)
        rival = np.where(holder[segment] == np.arange(len(values)), top[1][segment], top[0][segment])
        return self._placed(rival), self._placed(top.mean(axis=0)[segment])

    def _placed(self, numbers: Float32Array) -> Float32Array:
        if self.order is None:
            return numbers
        back = np.empty_like(numbers)
        back[self.order] = numbers
        return back


@dataclass(frozen=True, eq=False)
class Stretches:
    """Pairs in s consecutive, non-empty groups: their `sizes`, and the first pair of each (`starts`), int64 [s]."""

    sizes: Int64Array

    @classmethod
    def between(cls, begin: Int64Array) -> Stretches:
        """Return the groups that begin at `begin[:-1]` and end before `begin[1:]`, without the empty ones."""
        sizes = np.diff(begin)
        return cls(sizes[sizes > 0])

    @cached_property
    def starts(self) -> Int64Array:
        """The first pair of each group: int64 [s]."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def of(self) -> Int64Array:
        """The group of each pair: int64 [p]."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def row_statistics(graph: Graph, values: Float32Array) -> PairStatistics:
    """Return the statistics of a score (float32 [p]) over each row of the graph."""
    return PairStatistics(values, graph.row_segments)


def column_statistics(graph: Graph, values: Float32Array) -> PairStatistics:
    """Return the statistics of a score (float32 [p]) over each column of the graph."""
    return PairStatistics(values[graph.by_column], graph.column_segments, graph.by_column)


def _top(values: Float32Array, starts: Int64Array, segment: Int64Array) -> tuple[Float32Array, Int64Array]:
    """Return the highest scores of each segment, float32 [4, s], 0 if there are fewer, and the best's position."""
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
