"""Linking by an encoder's vectors of passages: near passages nominate pages, all of whose passages are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from indexes.arrays import normalised
from indexes.dtypes import Float32Array, Int64Array
from linker.base.progress import bar
from linker.crosslingual.scoring.assignment import MARGIN_NEIGHBOURS, margin
from linker.crosslingual.scoring.candidates import Candidates, Neighbours, hashes, nearest, rank
from linker.crosslingual.scoring.dense import Cosines
from linker.crosslingual.scoring.passage_margin import PARTS, PassageScores
from linker.crosslingual.scoring.passage_vectors import PassageVectors, encode_passages
from linker.crosslingual.task import Task, encoded

NEAREST = 16  # target passages that a source passage votes for
PROPOSED = 25  # candidate pages from votes, and as many from pooled vectors
SHARPNESS = 8  # a passage's vote is its margin, raised to this power


def ranked_by_passages(task: Task, name: str, part: str) -> Candidates:
    """Return the target pages of each source page, ranked by `part`, one of the scores `PARTS` of their passages.

    The encoder `name` encodes each passage once. Candidates of a page are the pages of the passages that are nearest to
    its own, and the pages with the nearest mean vectors.
    """
    proposed, scores = propose(task, *encoded(task, name, encode_passages))
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
    proposed = united(votes, by_means(task, source, target).cut(PROPOSED))
    return proposed, PassageScores(source, target, near.forward, near.backward)


def by_votes(
    near: Neighbours, source: PassageVectors, target: PassageVectors, *ids: tuple[str, ...]
) -> Candidates:
    """Return the pages with the most votes for each page: the sums of its passages' margins, to the eighth power.

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


def united(first: Candidates, second: Candidates) -> Int64Array:
    """Return the union of both lists of targets: int64 [n, k], −1 if there are fewer."""
    new = (second.targets[:, :, None] != first.targets[:, None, :]).all(axis=2)
    return np.concatenate((first.targets, np.where(new, second.targets, -1)), axis=1)


def _nearest_passages(task: Task, source: PassageVectors, target: PassageVectors) -> Neighbours:
    """Return the nearest target passages of each source passage, with the task's checkpoint."""
    ids = (
        [f"{pages.ids[page]} {row}" for row, page in enumerate(vectors.owner.tolist())]
        for pages, vectors in ((task.source, source), (task.target, target))
    )
    scorer = Cosines(_dense(source), _dense(target))
    with bar(scorer.shape[0], "comparing", "passages") as meter:
        return nearest(
            scorer, *ids, depth=NEAREST, k=MARGIN_NEIGHBOURS, checkpoint=task.checkpoint, advance=meter.update
        )  # fmt: skip


def by_means(task: Task, source: PassageVectors, target: PassageVectors) -> Candidates:
    """Return the pages whose mean vectors are nearest to each page's, by margin."""
    ids = task.source.ids, task.target.ids
    return margin(nearest(Cosines(_means(source), _means(target)), *ids), *ids)


def _means(vectors: PassageVectors) -> Float32Array:
    """Return the mean vector of each page, of length 1: float32 [n, d]; 0 for an empty page."""
    dense = _dense(vectors)
    total = np.zeros((len(vectors.begin) - 1, dense.shape[1]), np.float32)
    np.add.at(total, vectors.owner, dense)
    return normalised(total)


def _dense(vectors: PassageVectors) -> Float32Array:
    assert isinstance(vectors.vectors, np.ndarray)
    return vectors.vectors
