"""From scores to links: margin (LASER's CSLS ratio) and one-to-one matching.

`promote` and `pigeonhole` reorder without new scores; `descending` makes the scores agree with the order at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.scoring.candidates import DECIMALS, Candidates, Neighbours, hashes, rank, tie_breaks

MARGIN_NEIGHBOURS = 4


def margin(neighbours: Neighbours, source_ids: Sequence[str], target_ids: Sequence[str]) -> Candidates:
    """Re-rank candidates by score / ((mean of the source's k best + mean of the target's k best) / 2).

    Artetxe & Schwenk's ratio margin: a target that is near to everything (a hub) loses.
    """
    rows, columns, scores = neighbours.candidates.pairs()
    mean = (neighbours.forward[rows] + neighbours.backward[columns]) / np.float32(2)
    n, k = neighbours.candidates.targets.shape
    return rank(rows, columns, scores / mean, n, k, hashes(source_ids), hashes(target_ids))


def greedy(candidates: Candidates, source_ids: Sequence[str], target_ids: Sequence[str]) -> Int64Array:
    """Match one to one, best pairs first; ties by the hash of the ids. Returns each source's target, −1 for none."""
    rows, columns, scores = candidates.pairs()
    return _greedy(rows, columns, scores, len(candidates.targets), source_ids, target_ids)


def maximum(
    forward: Candidates, backward: Candidates, source_ids: Sequence[str], target_ids: Sequence[str]
) -> Int64Array:
    """Match the union of forward and backward bests, best first, where both sides are free (LASER's "max")."""
    f, ft, fs = forward.cut(1).pairs()
    b, bs, bscores = backward.cut(1).pairs()
    rows, columns = np.concatenate((f, bs)), np.concatenate((ft, b))
    scores = np.concatenate((fs, bscores))
    return _greedy(rows, columns, scores, len(forward.targets), source_ids, target_ids)


def intersect(forward: Candidates, backward: Candidates) -> Int64Array:
    """Match mutual bests only. Returns each source's target, −1 for none."""
    best, back = forward.targets[:, 0], backward.targets[:, 0]
    mutual = (best >= 0) & (back[best] == np.arange(len(best)))
    return np.where(mutual, best, -1)


def promote(candidates: Candidates, partner: Int64Array) -> Candidates:
    """Put each source's partner at rank 1 and keep the order of the others; no partner, no change."""
    order = np.argsort(candidates.targets != partner[:, None], axis=1, kind="stable")
    order[partner < 0] = np.arange(order.shape[1])
    targets = np.take_along_axis(candidates.targets, order, axis=1)
    return Candidates(targets, np.take_along_axis(candidates.scores, order, axis=1))


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
    """Order each source's candidates: its partner, then those that are nobody's partner, then the rest; else as before.

    A target that found its partner is a filler elsewhere (the LINA runs).
    """
    claimed = np.append(np.isin(np.arange(candidates.targets.max(initial=-1) + 1), partner), True)
    group = np.where(candidates.targets == partner[:, None], 0, 1 + claimed[candidates.targets])
    group[candidates.targets < 0] = 3
    order = np.argsort(group, axis=1, kind="stable")
    targets = np.take_along_axis(candidates.targets, order, axis=1)
    return Candidates(targets, np.take_along_axis(candidates.scores, order, axis=1))


def descending(candidates: Candidates) -> Candidates:
    """Raise scores as little as is needed for each row to fall strictly: whoever sorts by score finds our order.

    Otherwise an evaluator would break ties by the ids, which nobody ranked by.
    """
    scores = candidates.scores.copy()
    for column in range(scores.shape[1] - 2, -1, -1):
        least = np.nextafter(scores[:, column + 1], np.float32(np.inf))
        scores[:, column] = np.where(
            candidates.targets[:, column + 1] >= 0, np.maximum(scores[:, column], least), scores[:, column]
        )
    return Candidates(candidates.targets, scores)
