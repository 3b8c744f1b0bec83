"""Features of candidates from many weak scores: each score relative to its row, column and neighbourhood.

All statistics are over the candidate graph, not over all pairs: a page competes only with the retrieved pages.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from indexes.cores import cores
from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.scoring.graph import Graph, PairStatistics, column_statistics, row_statistics
from linker.scoring.ranking.lists import CandidateLists

LIST = 50  # candidates per page
TINY = np.float32(1e-6)
FEWER = 4
PARTS = ("z", "row", "column", "margin")


def candidate_lists(
    values: Mapping[str, Float32Array],
    graph: Graph,
    rows: Int64Array,
    *,
    choosing: Sequence[str],
    order: Int64Array,
    size: int = LIST,
) -> CandidateLists:
    """Return the `size` best candidates of each source page in `rows` (int64 [n]), with features.

    `values`: the scores of the graph's pairs, float32 [pairs]. Each page in `rows` has at least `size` pairs in the
    graph; the graph's other source pages compete for the targets. Candidates are ranked by the sum, over the scores
    named in `choosing`, of the z-values of score and margin; equal sums by `order`, int64 [targets].
    """
    described = np.flatnonzero(np.isin(graph.rows, rows))
    criteria = [name for name in choosing if name in values]
    # The other pages' features are not kept: a large task has many times more pairs than candidates.
    few = len(described) * FEWER <= len(graph)
    parts_of: dict[str, tuple[Float32Array, ...]] = {}

    def choose(name: str) -> Float32Array:
        parts = _relative(graph, values[name])
        total = (parts[0] + _z(parts[-1], row_statistics(graph, parts[-1])))[described]
        if few:
            parts_of[name] = tuple(part[described] for part in parts)
        return total

    def describe(name: str) -> list[Float32Array]:
        if name in parts_of:
            return [part[best] for part in parts_of.pop(name)]
        return [part[described[best]] for part in _relative(graph, values[name])]

    with ThreadPoolExecutor(cores()) as pool:
        total = sum(pool.map(choose, criteria), np.zeros(len(described), np.float32))
        best = _best(graph.rows[described], total, order[graph.columns[described]], rows, size)
        columns = [part for parts in pool.map(describe, values) for part in parts]
    columns.append(total[best] - total[best[:, :1]])
    names = (*(f"{name}.{part}" for name in values for part in PARTS), "chosen.gap")
    targets = graph.columns[described[best]]
    return CandidateLists(rows, targets, np.stack(columns, axis=2, dtype=np.float32), names)


def _z(values: Float32Array, row: PairStatistics) -> Float32Array:
    return np.asarray((values - row.mean) / np.maximum(row.deviation, TINY), np.float32)


def _relative(graph: Graph, values: Float32Array) -> tuple[Float32Array, ...]:
    """Return z, the gap to the best other target, the gap to the best other source, and the margin: each [p]."""
    row, column = row_statistics(graph, values), column_statistics(graph, values)
    parts = (
        _z(values, row),
        (values - row.rival) / np.maximum(row.deviation, TINY),
        (values - column.rival) / np.maximum(column.deviation, TINY),
        values / np.maximum((row.near + column.near) / 2, TINY),
    )
    return tuple(np.asarray(part, np.float32) for part in parts)


def _best(
    owner: Int64Array, total: Float32Array, order: Int64Array, rows: Int64Array, size: int
) -> Int64Array:
    """Return the positions of the `size` highest totals of each of `rows`, best first: int64 [n, size]."""
    ranked = np.lexsort((order, -total, owner))
    places = np.searchsorted(owner, rows)[:, None] + np.arange(size)
    return np.asarray(ranked[places], np.int64)


def with_pairs(lists: CandidateLists, similar: Float32Array, names: Sequence[str]) -> CandidateLists:
    """Return the lists with more features: scores `similar` [n, c, p], their z-values, and gaps to the best other."""
    mean, deviation = (
        similar.mean(axis=1, keepdims=True),
        np.maximum(similar.std(axis=1, keepdims=True), TINY),
    )
    ordered = -np.sort(-similar, axis=1)
    best, second = ordered[:, :1], ordered[:, 1:2] if similar.shape[1] > 1 else np.zeros_like(ordered)
    gap = (similar - np.where(similar == best, second, best)) / deviation
    more = np.concatenate([similar, (similar - mean) / deviation, gap], axis=2)
    more_names = tuple(f"{name}.{part}" for part in ("value", "z", "row") for name in names)
    features = np.concatenate([lists.features, more], axis=2)
    return replace(lists, features=features, names=lists.names + more_names)
