"""What an approximate index finds of the exact best, against what a search costs: the curve to choose settings by."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from indexes.interface import IndexesError, Matrix, RowArray
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.pq import Settings

TIMED = 100  # queries timed one by one


@dataclass(frozen=True, slots=True)
class Point:
    """Settings, the mean share of the k best that they find, and CPU milliseconds of one query alone."""

    settings: Settings
    recall: float
    ms: float

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"settings": dict(self.settings), "recall": round(self.recall, 5), "ms": round(self.ms, 4)}


@dataclass(frozen=True, slots=True)
class Curve:
    """All points, cheapest settings first, and the cost of exact search by the same index."""

    points: tuple[Point, ...]
    exact_ms: float
    k: int
    queries: int


def held_out(index: FaissIndex, rows: RowArray) -> tuple[Matrix, RowArray]:
    """Return documents' vectors as queries, and the rows that are not to count as found: their own."""
    return np.array(index.vectors[rows]), rows


def measure(index: FaissIndex, queries: Matrix, k: int, own: RowArray | None = None) -> Curve:
    """Try every setting on queries [n, dim]; `own` names a row for each query that is left out of its answer.

    Raises IndexesError where the index has nothing to tune. The index's settings stay as they were.
    """
    generator = index.generator
    if generator is None:
        raise IndexesError(
            "the index searches exactly (flat, or too few documents to be worth approximating): nothing to tune"
        )
    fetch = min(k + (own is not None), len(index))
    truth = _without(index.search_exactly(queries, fetch)[0], own, k)
    before, points = dict(generator.settings), []
    try:
        for settings in generator.GRID:
            generator.settings |= settings
            found = _without(index.search_rows(queries, fetch)[0], own, k)
            points.append(Point(settings, _share(found, truth), _cost(index, queries, k)))
    finally:
        generator.settings |= before
    start = time.process_time()
    for query in queries[:TIMED, None]:
        index.search_exactly(query, fetch)
    exact = (time.process_time() - start) / len(queries[:TIMED]) * 1e3
    return Curve(tuple(points), exact, k, len(queries))


def choose(points: Sequence[Point], target: float) -> Point:
    """Return the cheapest point that reaches the target, or the one that finds most when none does."""
    reaching = [p for p in points if p.recall >= target]
    return min(reaching, key=lambda p: p.ms) if reaching else max(points, key=lambda p: p.recall)


def _without(rows: RowArray, own: RowArray | None, k: int) -> RowArray:
    """Take each query's own row out (or the last one where it was not found), so that all keep equally many."""
    if own is None:
        return rows
    drop = rows == own[:, None]
    drop[~drop.any(axis=1), -1] = True
    kept: RowArray = rows[~drop].reshape(len(rows), -1)[:, :k]
    return kept


def _share(found: RowArray, truth: RowArray) -> float:
    return float(np.mean([np.isin(t, f).mean() for f, t in zip(found, truth, strict=True)]))


def _cost(index: FaissIndex, queries: Matrix, k: int) -> float:
    """Return CPU milliseconds of one query: the least of two passes over the first queries, one at a time."""
    part, times = queries[:TIMED, None], []
    for _ in range(2):
        start = time.process_time()
        for query in part:
            index.search_rows(query, k)
        times.append(time.process_time() - start)
    return min(times) / len(part) * 1e3
