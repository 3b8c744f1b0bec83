"""Features of candidates from many weak scores: each score relative to its row, its column and its neighbourhood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.scoring.scores import Restrictable, held

LIST = 50  # candidates per page
NEAREST = 4  # neighbours in the margin
BLOCK = 256
TINY = np.float32(1e-6)
MEMORY = 2 << 30  # bytes of scores held between the two passes; larger ones are computed twice
PARTS = ("z", "row", "column", "margin")


@dataclass(frozen=True, eq=False)
class Lists:
    """Candidates of n source pages: `rows` [n], `targets` [n, c], best guess first; float32 `features` [n, c, f]."""

    rows: Int64Array
    targets: Int64Array
    features: Float32Array
    names: tuple[str, ...]

    def right(self, gold: Mapping[int, int]) -> Int64Array:
        """Return the position of each row's linked target in its list: int64 [n], −1 if it is not there."""
        linked = np.array([gold.get(int(row), -1) for row in self.rows], np.int64)
        hit = self.targets == linked[:, None]
        return np.where(hit.any(axis=1), hit.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class Columns:
    """Statistics of one score over all source pages, for each target: float32 [m], `holder` int64 [m].

    `best` and `second` are the two highest scores, `holder` the row of the best, `near` the mean of the highest four.
    """

    deviation: Float32Array
    best: Float32Array
    second: Float32Array
    holder: Int64Array
    near: Float32Array

    def others(self, rows: Int64Array, targets: Int64Array) -> Float32Array:
        """Return the best score of each target with any other source page: [n, c], for rows [n, 1], targets [n, c]."""
        return np.where(self.holder[targets] == rows, self.second[targets], self.best[targets])


def columns_of(score: Restrictable) -> Columns:
    """Return the column statistics of a score, computed in one pass."""
    n, m = score.shape
    total, squares = np.zeros(m), np.zeros(m)
    top = np.full((min(NEAREST, n), m), -np.inf, np.float32)
    holder = np.zeros(m, np.int64)
    for begin in range(0, n, BLOCK):
        block = score.block(begin, min(begin + BLOCK, n))
        total += block.sum(axis=0)
        squares += np.square(block, dtype=np.float64).sum(axis=0)
        holder = np.where(block.max(axis=0) > top[0], begin + block.argmax(axis=0), holder)
        top = -np.sort(-np.concatenate((top, block)), axis=0)[: len(top)]
    deviation = np.sqrt(np.maximum(squares / n - np.square(total / n), 0)).astype(np.float32)
    second = top[1] if n > 1 else np.zeros(m, np.float32)
    return Columns(np.maximum(deviation, TINY), top[0], second, holder, top.mean(axis=0))


@dataclass(frozen=True, eq=False)
class _RowView:
    """A block of a score [b, m] with statistics of its rows, each [b, 1]; `holder` is the column of the best."""

    values: Float32Array
    mean: Float32Array
    deviation: Float32Array
    best: Float32Array
    second: Float32Array
    holder: Int64Array
    near: Float32Array

    @classmethod
    def of(cls, values: Float32Array) -> _RowView:
        k = min(NEAREST, values.shape[1])
        top = -np.sort(-np.partition(values, values.shape[1] - k, axis=1)[:, values.shape[1] - k :], axis=1)
        second = top[:, 1:2] if k > 1 else np.zeros_like(top)
        deviation = np.maximum(values.std(axis=1, keepdims=True), TINY)
        mean, near = values.mean(axis=1, keepdims=True), top.mean(axis=1, keepdims=True)
        return cls(values, mean, deviation, top[:, :1], second, values.argmax(axis=1)[:, None], near)

    def z(self) -> Float32Array:
        return (self.values - self.mean) / self.deviation

    def features(self, columns: Columns, rows: Int64Array, targets: Int64Array) -> list[Float32Array]:
        """Return z, the gap to the best other target, the gap to the best other source, and the margin: each [b, c]."""
        value = np.take_along_axis(self.values, targets, axis=1)
        row_best = np.where(targets == self.holder, self.second, self.best)
        return [
            (value - self.mean) / self.deviation,
            (value - row_best) / self.deviation,
            (value - columns.others(rows, targets)) / columns.deviation[targets],
            value / np.maximum((self.near + columns.near[targets]) / 2, TINY),
        ]


def candidate_lists(
    scores: Mapping[str, Restrictable],
    rows: Int64Array,
    competitors: Int64Array,
    columns: Int64Array,
    *,
    choosing: Sequence[str],
    size: int = LIST,
    advance: Callable[[int], object] = lambda done: None,
) -> Lists:
    """Return up to `size` candidates of each row, with features.

    `rows` [n] are the source pages to describe, `competitors` other source pages that compete for the same targets,
    `columns` the targets that are available, all int64. Candidates are ranked by the sum, over the scores named in
    `choosing`, of the z-values of score and margin. Memory: the scores of all pairs up to 2 GiB, otherwise one block.
    """
    everyone = np.concatenate([rows, competitors])
    chosen = {name: score.restrict(everyone, columns) for name, score in scores.items()}
    if 4 * len(scores) * len(everyone) * len(columns) <= MEMORY:
        chosen = {name: held(score) for name, score in chosen.items()}
    gathered = {name: columns_of(score) for name, score in chosen.items()}
    parts = []
    for begin in range(0, len(rows), BLOCK):
        end = min(begin + BLOCK, len(rows))
        parts.append(_block(chosen, gathered, begin, end, [c for c in choosing if c in chosen], size))
        advance(end - begin)
    names = (*(f"{name}.{part}" for name in chosen for part in PARTS), "chosen.gap")
    if not parts:
        width = min(size, len(columns))
        return Lists(
            rows, np.zeros((0, width), np.int64), np.zeros((0, width, len(names)), np.float32), names
        )
    targets = columns[np.concatenate([t for t, _ in parts])]
    return Lists(rows, targets, np.concatenate([f for _, f in parts]), names)


def _block(
    scores: Mapping[str, Restrictable],
    columns: Mapping[str, Columns],
    begin: int,
    end: int,
    choosing: Sequence[str],
    size: int,
) -> tuple[Int64Array, Float32Array]:
    views = {name: _RowView.of(score.block(begin, end)) for name, score in scores.items()}
    total = np.zeros_like(next(iter(views.values())).values)
    for name in choosing:
        view = views[name]
        total += view.z()
        near = np.maximum((view.near + columns[name].near) / 2, TINY)
        total += _RowView.of((view.values / near).astype(np.float32)).z()
    targets = np.argsort(-total, axis=1, kind="stable")[:, :size]
    rows = np.arange(begin, end)[:, None]
    features = [f for name, view in views.items() for f in view.features(columns[name], rows, targets)]
    sums = np.take_along_axis(total, targets, axis=1)
    features.append(sums - sums[:, :1])
    return targets, np.stack(features, axis=2).astype(np.float32)


def with_pairs(lists: Lists, similar: Float32Array, names: Sequence[str]) -> Lists:
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
    return Lists(
        lists.rows, lists.targets, np.concatenate([lists.features, more], axis=2), lists.names + more_names
    )
