"""The costs of Vecalign's moves between the passages of one page and those of several candidate pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from indexes.dtypes import Float32Array, Float64Array, Int64Array
from linker.crosslingual.scoring.alignment import MOVES, Costs
from linker.crosslingual.scoring.candidates import DECIMALS
from linker.crosslingual.scoring.passage_vectors import MOST, PassageVectors, windows


@dataclass(frozen=True, eq=False)
class PassageCosts:
    """Costs of aligning pages of two collections; `skip`: the cost of leaving a passage out.

    Joining a source and b target passages costs a · b · (1 − cosine), divided by the mean of their average distances
    to all passages of the other collection (Thompson & Koehn sample random passages instead). A link between two
    unrelated passages thus costs about 1. The vector of several passages is the sum of their vectors, whereas
    Thompson & Koehn encode the joined text. `means`: the mean vectors of two larger collections, float64 [d] each, if
    these pages are only a part of them.
    """

    source: PassageVectors
    target: PassageVectors
    skip: float
    means: tuple[Float64Array, Float64Array] | None = None

    @cached_property
    def source_distances(self) -> list[Float64Array]:
        """Mean distances of 1, 2, … source passages to all target passages: float64 [p] each."""
        return _mean_distances(self.source, self.means[1] if self.means else self.target.mean)

    @cached_property
    def target_distances(self) -> list[Float64Array]:
        """Mean distances of 1, 2, … target passages to all source passages: float64 [q] each."""
        return _mean_distances(self.target, self.means[0] if self.means else self.source.mean)

    def between(self, row: int, cosines: Float32Array, places: Int64Array) -> Costs:
        """Return the costs of aligning a source page with c target pages, from the result of `cosines_of`.

        Skipping a position beyond a page's last passage is free.
        """
        begin, end = self.source.begin[row : row + 2].tolist()
        moves = {}
        for a, b in MOVES:
            if a <= end - begin and b <= places.shape[1]:
                x = slice(begin, end - a + 1)
                first, last = places[:, : places.shape[1] - b + 1], places[:, b - 1 :]
                product = _joined(cosines, a, b)
                product /= self.source.lengths[a - 1][x, None] * self.target.lengths[b - 1][first][:, None]
                typical = self.source_distances[a - 1][x, None] + self.target_distances[b - 1][first][:, None]
                # Rounded, because rounding errors would otherwise join two pairs of equal passages.
                distance = np.maximum(1 - np.round(product, DECIMALS), 0)
                cost = 2 * a * b * distance / np.maximum(typical, 1e-6)
                moves[a, b] = np.where(last[:, None] >= 0, cost, np.inf)
        source_skips = np.full((len(places), end - begin), self.skip)
        return Costs(moves, source_skips, np.where(places >= 0, self.skip, 0.0))


def _mean_distances(collection: PassageVectors, other: Float64Array) -> list[Float64Array]:
    products = np.asarray(collection.vectors @ other, np.float64).ravel()
    return [1 - windows(products, a) / collection.lengths[a - 1] for a in range(1, MOST + 1)]


def _joined(cosines: Float32Array, a: int, b: int) -> Float64Array:
    """Return the sums of a × b neighbouring entries of the last two axes: float64 [..., n − a + 1, m − b + 1]."""
    n, m = cosines.shape[-2:]
    total = np.zeros((*cosines.shape[:-2], n - a + 1, m - b + 1))
    for i in range(a):
        for j in range(b):
            total += cosines[..., i : n - a + 1 + i, j : m - b + 1 + j]
    return total
