"""Scores of page pairs from the vectors of their passages, relative to the passages' nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Float32Array, Float64Array, Int64Array
from linker.crosslingual.scoring.alignment import Costs, least_costs
from linker.crosslingual.scoring.passage_vectors import PassageVectors, cosines_of

PARTS = ("max", "mean", "align")
# powers of a margin, so that close passages count most (chosen on training pages)
MEAN_POWER, ALIGN_POWER = 5, 4
AT_A_TIME = 1 << 20  # pairs of passages compared at a time


@dataclass(frozen=True, eq=False)
class PassageScores:
    """Scores of candidate pages: their best pair of passages, the mean of the best pairs, and how well they align.

    `forward` float32 [p] and `backward` float32 [q]: mean cosines of each source and target passage with its nearest
    neighbours, by which cosines are divided (the ratio margin of Artetxe & Schwenk, 2019).
    """

    source: PassageVectors
    target: PassageVectors
    forward: Float32Array
    backward: Float32Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        return tuple(f"encoder.{part}" for part in PARTS)

    def features(self, rows: Int64Array, candidates: Int64Array) -> Float32Array:
        """Return float32 [n, c, 3] for the source pages `rows` [n] and their `candidates` [n, c]; 0 for a missing one.

        The scores are the greatest margin of two passages; the power mean of each passage's greatest margin, as the
        geometric mean of both directions; and the sum of the margins along the best monotone alignment, each raised to
        a power, divided by the root of the number of passages.
        """
        out = np.zeros((*candidates.shape, len(PARTS)), np.float32)
        sizes = np.diff(self.target.begin)
        for i, (row, columns) in enumerate(zip(rows.tolist(), candidates, strict=True)):
            present = np.flatnonzero((columns >= 0) & (sizes[columns] > 0))
            for part in self._groups(row, present, sizes[columns]):
                out[i, part] = self._page(row, columns[part])
        return out

    def _groups(self, row: int, candidates: Int64Array, sizes: Int64Array) -> Iterator[Int64Array]:
        """Yield groups of candidates of similar size, small enough that the comparison stays in the cache."""
        length = int(self.source.begin[row + 1] - self.source.begin[row])
        ordered = candidates[np.argsort(sizes[candidates], kind="stable")]
        first = 0
        while length and first < len(ordered):
            areas = length * sizes[ordered[first:]] * np.arange(1, len(ordered) - first + 1)
            last = first + max(1, int(np.searchsorted(areas, AT_A_TIME, side="right")))
            yield ordered[first:last]
            first = last

    def _page(self, row: int, columns: Int64Array) -> Float32Array:
        cosines, places = cosines_of(self.source, self.target, row, columns)
        source = slice(*self.source.begin[row : row + 2].tolist())
        neighbours = (self.forward[source][:, None] + self.backward[places][:, None]) / 2
        margins = np.maximum(cosines / np.maximum(neighbours, 1e-6), 0).astype(np.float64)
        margins *= places[:, None] >= 0
        forward, backward = margins.max(axis=2), margins.max(axis=1)
        there = (forward**MEAN_POWER).mean(axis=1)
        sizes = (places >= 0).sum(axis=1)
        back = (backward**MEAN_POWER).sum(axis=1) / sizes
        mean = np.sqrt(there * back) ** (1 / MEAN_POWER)
        aligned = _along_the_best_path(margins**ALIGN_POWER) / np.sqrt(len(forward[0]) + sizes)
        return np.stack((forward.max(axis=1), mean, aligned), axis=1).astype(np.float32)


def _along_the_best_path(gains: Float64Array) -> Float64Array:
    """Return the greatest sum of gains [c, n, m] over non-crossing pairs, each passage in at most one: [c]."""
    free = np.zeros(gains.shape[:2]), np.zeros((len(gains), gains.shape[2]))
    return -least_costs(Costs({(1, 1): -gains}, *free))[:, -1, -1]
