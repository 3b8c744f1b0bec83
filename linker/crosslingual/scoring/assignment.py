"""Turning scores into links: the ratio margin and one-to-one matching.

`promote` and `pigeonhole` reorder candidates without changing their scores; `descending` then makes the scores agree
with the order.
"""

from collections.abc import Sequence

import numpy as np

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.scoring.candidates import DECIMALS, Candidates, Neighbours, hashes, rank, tie_breaks

MARGIN_NEIGHBOURS = 4


def margin(neighbours: Neighbours, source_ids: Sequence[str], target_ids: Sequence[str]) -> Candidates:
    """Return the candidates [n, k] re-ranked by Artetxe & Schwenk's ratio margin, which demotes hubs.

    A pair's score is divided by the mean of the two pages' mean scores with their nearest neighbours.
    """
    rows, columns, scores = neighbours.candidates.pairs()
    mean = (neighbours.forward[rows] + neighbours.backward[columns]) / np.float32(2)
    n, k = neighbours.candidates.targets.shape
    return rank(rows, columns, scores / mean, n, k, hashes(source_ids), hashes(target_ids))


def greedy(candidates: Candidates, source_ids: Sequence[str], target_ids: Sequence[str]) -> Int64Array:
    """Return a one-to-one matching, best pairs first: each source's target, int64 [n], −1 for none."""
    rows, columns, scores = candidates.pairs()
    return _greedy(rows, columns, scores, len(candidates.targets), source_ids, target_ids)


def maximum(
    forward: Candidates, backward: Candidates, source_ids: Sequence[str], target_ids: Sequence[str]
) -> Int64Array:
    """Return a one-to-one matching of the best pairs of both directions, best first (LASER's "max"): int64 [n].

    `forward` holds the targets of n sources, `backward` the sources of all targets. −1 stands for no target.
    """
    f, ft, fs = forward.cut(1).pairs()
    b, bs, bscores = backward.cut(1).pairs()
    rows, columns = np.concatenate((f, bs)), np.concatenate((ft, b))
    scores = np.concatenate((fs, bscores))
    return _greedy(rows, columns, scores, len(forward.targets), source_ids, target_ids)


def promote(candidates: Candidates, partner: Int64Array) -> Candidates:
    """Return the candidates with each source's `partner` (int64 [n], −1 for none) at rank 1, others in order."""
    order = np.argsort(candidates.targets != partner[:, None], axis=1, kind="stable")
    order[partner < 0] = np.arange(order.shape[1])
    targets = np.take_along_axis(candidates.targets, order, axis=1)
    return Candidates(targets, np.take_along_axis(candidates.scores, order, axis=1))


def one_to_one(
    ranking: Candidates, source_ids: Sequence[str], target_ids: Sequence[str]
) -> tuple[Candidates, Float32Array]:
    """Return the candidates after a greedy one-to-one assignment, and the score of each source's first target.

    Each source's assigned target moves to rank 1. It keeps its score, and the scores of the targets that it overtook
    are lowered to that score. A source without an assigned target, because others took all of its candidates, keeps
    its order. The first scores are float32 [n], 0 for a source without candidates.
    """
    candidates = promote(ranking, greedy(ranking, source_ids, target_ids))
    promoted = (ranking.targets == candidates.targets[:, :1]) & (ranking.targets >= 0)
    first = np.where(promoted, ranking.scores, 0).max(axis=1)
    return Candidates(candidates.targets, np.minimum(candidates.scores, first[:, None])), first


def _greedy(
    rows: Int64Array,
    columns: Int64Array,
    scores: Float32Array,
    n: int,
    source_ids: Sequence[str],
    target_ids: Sequence[str],
) -> Int64Array:
    ties = tie_breaks(hashes(source_ids)[rows], hashes(target_ids)[columns])
    order = np.lexsort((ties, -np.round(scores.astype(np.float64), DECIMALS)))
    partner = np.full(n, -1, np.int64)
    taken: set[int] = set()
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if partner[row] < 0 and column not in taken:
            partner[row] = column
            taken.add(column)
    return partner


def pigeonhole(candidates: Candidates, partner: Int64Array) -> Candidates:
    """Return each source's candidates reordered: its partner, targets without a partner, then the rest.

    `partner`: int64 [n], −1 for none. As in the LINA runs, a matched target only fills the last ranks elsewhere.
    """
    claimed = np.append(np.isin(np.arange(candidates.targets.max(initial=-1) + 1), partner), True)
    group = np.where(candidates.targets == partner[:, None], 0, 1 + claimed[candidates.targets])
    group[candidates.targets < 0] = 3
    order = np.argsort(group, axis=1, kind="stable")
    targets = np.take_along_axis(candidates.targets, order, axis=1)
    return Candidates(targets, np.take_along_axis(candidates.scores, order, axis=1))


def descending(candidates: Candidates) -> Candidates:
    """Return the candidates with scores raised just enough to decrease strictly: ids must not break ties."""
    scores = candidates.scores.copy()
    for column in range(scores.shape[1] - 2, -1, -1):
        least = np.nextafter(scores[:, column + 1], np.float32(np.inf))
        scores[:, column] = np.where(
            candidates.targets[:, column + 1] >= 0, np.maximum(scores[:, column], least), scores[:, column]
        )
    return Candidates(candidates.targets, scores)
