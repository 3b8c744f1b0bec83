"""Recall of an approximate index versus search cost: the curve from which settings are chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from indexes.interface import IndexesError, Matrix, RowArray, ScoreArray
from indexes.vectors.pq import Settings

TIMED = 100  # number of queries that are timed, one at a time


@dataclass(frozen=True, slots=True)
class SearchCost:
    """Search settings, their recall of the exact top k, and milliseconds per single query."""

    settings: Settings
    recall: float
    ms: float

    def to_json(self) -> dict[str, Any]:
        """Return the point as JSON values, rounded."""
        return {"settings": dict(self.settings), "recall": round(self.recall, 5), "ms": round(self.ms, 4)}


@dataclass(frozen=True, slots=True)
class Curve:
    """One point per combination of settings, in grid order, and the cost of exact search with the same index."""

    points: tuple[SearchCost, ...]
    exact_ms: float
    k: int
    queries: int


class Generator(Protocol):
    """The settings that are tuned, and the values to try."""

    settings: dict[str, float]
    GRID: ClassVar[Sequence[Settings]]


class ApproximateSearch(Protocol):
    """An index whose recall can be measured; `clock` returns the seconds that its searches have taken."""

    clock: Callable[[], float]

    def __len__(self) -> int: ...

    @property
    def generator(self) -> Generator | None:
        """The candidate generator; None if every search is exact."""

    def search_rows(self, queries: Matrix, k: int) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n, k]."""

    def search_exactly(self, queries: Matrix, k: int) -> tuple[RowArray, ScoreArray]:
        """Return the exact rows and scores, both [n, k]."""

    def draw(self, size: int, seed: int) -> tuple[Matrix, RowArray]:
        """Return the vectors (float32 [n, dim]) and the rows (int64 [n]) of at most `size` random documents."""


def measure(index: ApproximateSearch, queries: Matrix, k: int, own: RowArray | None = None) -> Curve:
    """Return the curve over `queries`, float32 [n, dim]; `own`, int64 [n]: the row to exclude from each result.

    Raises IndexesError if the index has nothing to tune. The index's settings are restored afterwards.
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
            answer = _without(index.search_rows(queries, fetch)[0], own, k)
            points.append(SearchCost(settings, _share(answer, truth), _cost(index, queries, k)))
    finally:
        generator.settings |= before
    start = index.clock()
    for query in queries[:TIMED, None]:
        index.search_exactly(query, fetch)
    exact = (index.clock() - start) / len(queries[:TIMED]) * 1e3
    return Curve(tuple(points), exact, k, len(queries))


def choose(points: Sequence[SearchCost], target: float) -> SearchCost:
    """Return the cheapest point whose recall reaches `target`, or the point with the highest recall if none does."""
    reaching = [p for p in points if p.recall >= target]
    return min(reaching, key=lambda p: p.ms) if reaching else max(points, key=lambda p: p.recall)


def _without(rows: RowArray, own: RowArray | None, k: int) -> RowArray:
    """Return `rows` [n, m] without each query's own row (or the last, if it is absent), truncated to k columns."""
    if own is None:
        return rows
    drop = rows == own[:, None]
    drop[~drop.any(axis=1), -1] = True
    others: RowArray = rows[~drop].reshape(len(rows), -1)[:, :k]
    return others


def _share(answer: RowArray, truth: RowArray) -> float:
    return float(np.mean([np.isin(t, a).mean() for a, t in zip(answer, truth, strict=True)]))


def _cost(index: ApproximateSearch, queries: Matrix, k: int) -> float:
    """Return milliseconds per query: the lower of two passes over the first queries, one at a time."""
    part, times = queries[:TIMED, None], []
    for _ in range(2):
        start = index.clock()
        for query in part:
            index.search_rows(query, k)
        times.append(index.clock() - start)
    return min(times) / len(part) * 1e3
