"""From many weak scores to features of candidates: each score relative to its row, its column and its neighbourhood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.scoring.scores import Restrictable, held

LIST = 50  # candidates of a page
NEAREST = 4  # neighbours of the margin
BLOCK = 256
TINY = np.float32(1e-6)
MEMORY = 2 << 30  # bytes of scores held between the two passes; beyond it they are computed twice
PARTS = ("z", "row", "column", "margin")


@dataclass(frozen=True, eq=False)
class Lists:
    """Candidates of n source pages: `rows` [n], `targets` [n, c] best guess first, `features` float32 [n, c, f]."""

    rows: Int64Array
    targets: Int64Array
    features: Float32Array
    names: tuple[str, ...]

    def right(self, gold: Mapping[int, int]) -> Int64Array:
        """Return where in its list each row's linked target stands: int64 [n], −1 where it does not."""
        wanted = np.array([gold.get(int(row), -1) for row in self.rows], np.int64)
        hit = self.targets == wanted[:, None]
        return np.where(hit.any(axis=1), hit.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class Columns:
    """What all source pages together say about each target, for one score; float32 [m], `holder` int64 [m]."""

    deviation: Float32Array
    best: Float32Array
    second: Float32Array
    holder: Int64Array
    near: Float32Array

    def others(self, rows: Int64Array, targets: Int64Array) -> Float32Array:
        """Return the best score that any other source page has with each target: rows [n, 1], targets [n, c]."""
        return np.where(self.holder[targets] == rows, self.second[targets], self.best[targets])


def columns_of(score: Restrictable) -> Columns:
    """Go over a score once and gather its columns."""
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
    """One block of a score with what its rows say: mean, deviation, best, second best and who is best."""

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
        """Return z, distance to the best other target, distance to the best other source, and margin."""
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
    """Choose each row's candidates and describe them.

    `rows` are the source pages to answer, `competitors` further source pages that may want the same targets,
    `columns` the targets that are free. Candidates are the best by the sum of the `choosing` scores' z-values, as they
    are and as margins. Memory: the scores of all pairs up to 2 GiB, else some blocks, computed twice.
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
    found = [f for name, view in views.items() for f in view.features(columns[name], rows, targets)]
    sums = np.take_along_axis(total, targets, axis=1)
    found.append(sums - sums[:, :1])
    return targets, np.stack(found, axis=2).astype(np.float32)


def with_pairs(lists: Lists, similar: Float32Array, names: Sequence[str]) -> Lists:
    """Append scores [n, c, p] of candidates alone: as they are, and relative to the list (z, gap to the best other)."""
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
