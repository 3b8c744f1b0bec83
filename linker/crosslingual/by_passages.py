"""Linking by vectors of passages: the nearest passages nominate pages, whose passages are then all compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from indexes.arrays import normalised
from indexes.dtypes import Float32Array, Float64Array, Int64Array
from linker.base.progress import bar
from linker.crosslingual.scoring.alignment import Costs, least_costs
from linker.crosslingual.scoring.assignment import MARGIN_NEIGHBOURS, margin
from linker.crosslingual.scoring.candidates import Candidates, Neighbours, hashes, nearest, rank
from linker.crosslingual.scoring.passage_vectors import PassageVectors, cosines_of, encode_passages
from linker.crosslingual.scoring.products import DenseProduct
from linker.crosslingual.task import Task, encode_both

NEAREST = 16  # target passages that a source passage votes for
PROPOSED = 25  # number of candidate pages from votes; the pooled vectors yield as many
SHARPNESS = 8  # a passage's vote is its margin, raised to this power
PARTS = ("max", "mean", "align")
# powers of a margin, so that close passages count most (chosen on training pages)
MEAN_POWER, ALIGN_POWER = 5, 4
AT_A_TIME = 1 << 20  # pairs of passages compared at a time


def ranked_by_passages(task: Task, name: str, part: str) -> Candidates:
    """Return the target pages of each source page, ranked by `part`, one of the scores `PARTS` of their passages.

    The encoder `name` encodes each passage once. Candidates of a page are the pages of the passages that are nearest to
    its own, and the pages with the nearest mean vectors.
    """
    proposed, scores = propose(task, *encode_both(task, name, encode_passages))
    values = np.zeros(proposed.shape, np.float32)
    with bar(len(proposed), "comparing", "pages") as meter:
        for row, candidates in enumerate(proposed):
            values[row] = scores.features(np.array([row]), candidates[None])[0, :, PARTS.index(part)]
            meter.update(1)
    rows, columns = np.nonzero(proposed >= 0)
    pairs = rows, proposed[rows, columns], values[rows, columns]
    return rank(*pairs, len(task.source), proposed.shape[1], hashes(task.source.ids), hashes(task.target.ids))


def propose(task: Task, source: PassageVectors, target: PassageVectors) -> tuple[Int64Array, PassageScores]:
    """Return up to 50 candidates of each source page, int64 [n, c] padded with −1, and their scorer."""
    near = _nearest_passages(task, source, target)
    if task.options.margin is False:
        near = replace(near, forward=np.ones_like(near.forward), backward=np.ones_like(near.backward))
    votes = by_votes(near, source, target, task.source.ids, task.target.ids)
    proposed = unite(votes, by_means(task, source, target).cut(PROPOSED))
    return proposed, PassageScores(source, target, near.forward, near.backward)


def by_votes(
    near: Neighbours, source: PassageVectors, target: PassageVectors, *ids: tuple[str, ...]
) -> Candidates:
    """Return the pages with the most votes for each page: sums over its passages of their margins to the eighth power.

    `near` holds the nearest passages. A passage votes for a page once, with its greatest margin there. `ids`: those
    of the source and the target pages, for ties.
    """
    n, m = len(source.begin) - 1, len(target.begin) - 1
    passages, others, cosines = near.candidates.pairs()
    margins = 2 * cosines / (near.forward[passages] + near.backward[others])
    ballots = passages * m + target.owner[others]
    order = np.lexsort((-margins, ballots))
    ballots, first = np.unique(ballots[order], return_index=True)
    weights = margins[order][first].astype(np.float64) ** SHARPNESS
    pairs, voted = np.unique(source.owner[ballots // m] * m + ballots % m, return_inverse=True)
    votes = np.bincount(voted, weights).astype(np.float32)
    return rank(pairs // m, pairs % m, votes, n, PROPOSED, hashes(ids[0]), hashes(ids[1]))


def unite(first: Candidates, second: Candidates) -> Int64Array:
    """Return the union of both lists of targets: int64 [n, k], −1 if there are fewer."""
    new = (second.targets[:, :, None] != first.targets[:, None, :]).all(axis=2)
    return np.concatenate((first.targets, np.where(new, second.targets, -1)), axis=1)


def _nearest_passages(task: Task, source: PassageVectors, target: PassageVectors) -> Neighbours:
    ids = (
        [f"{pages.ids[page]} {row}" for row, page in enumerate(vectors.owner.tolist())]
        for pages, vectors in ((task.source, source), (task.target, target))
    )
    scorer = DenseProduct(_dense(source), _dense(target).T)
    with bar(scorer.shape[0], "comparing", "passages") as meter:
        return nearest(
            scorer, *ids, depth=NEAREST, k=MARGIN_NEIGHBOURS, checkpoint=task.checkpoint, advance=meter.update
        )  # fmt: skip


def by_means(task: Task, source: PassageVectors, target: PassageVectors) -> Candidates:
    """Return the pages whose mean vectors are nearest to each page's, by margin."""
    ids = task.source.ids, task.target.ids
    return margin(nearest(DenseProduct(_means(source), _means(target).T), *ids), *ids)


def _means(vectors: PassageVectors) -> Float32Array:
    dense = _dense(vectors)
    total = np.zeros((len(vectors.begin) - 1, dense.shape[1]), np.float32)
    np.add.at(total, vectors.owner, dense)
    return normalised(total)


def _dense(vectors: PassageVectors) -> Float32Array:
    assert isinstance(vectors.vectors, np.ndarray)
    return vectors.vectors


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
