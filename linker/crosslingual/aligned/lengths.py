"""How well the lengths of two passages agree (Gale & Church, 1993)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from indexes.dtypes import Float64Array
from linker.crosslingual.scoring.alignment import MOVES, Costs, Move
from linker.crosslingual.scoring.passage_vectors import windows

VARIANCE = 6.8  # of the length of a translation, per character of the original
# Gale & Church's shares of the moves; theirs for one to three is none, so that it is a tenth of two to two's.
PRIORS = {(1, 1): 0.89, (1, 2): 0.0445, (2, 1): 0.0445, (2, 2): 0.011, (1, 3): 0.0011, (3, 1): 0.0011}
SKIPPED = 0.0099 / 2


def agreement(source: Float64Array, target: Float64Array, ratio: float) -> dict[Move, Float64Array]:
    """Return the probability that a translation's length is further off than that of the passages of each move.

    `source` [n] and `target` [m]: lengths in characters; `ratio`: target characters per source character. Each move
    a, b has a float64 array [n − a + 1, m − b + 1].
    """
    probabilities = {}
    for a, b in MOVES:
        if a <= len(source) and b <= len(target):
            x = windows(source, a)[: len(source) - a + 1, None]
            y = windows(target, b)[: len(target) - b + 1]
            mean = np.maximum((x + y / ratio) / 2, 1)
            deviation = (ratio * x - y) / np.sqrt(mean * VARIANCE)
            probabilities[a, b] = np.maximum(2 * ndtr(-np.abs(deviation)), 1e-12)
    return probabilities


def gale_church(source: Float64Array, target: Float64Array, ratio: float) -> Costs:
    """Return Gale & Church's costs, which look at lengths alone: the baseline of aligners. Arguments as `agreement`."""
    moves = {move: -np.log(p * PRIORS[move]) for move, p in agreement(source, target, ratio).items()}
    skips = -np.log(SKIPPED)
    return Costs(moves, np.full(len(source), skips), np.full(len(target), skips))
