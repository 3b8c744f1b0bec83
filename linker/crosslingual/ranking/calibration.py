"""Turning a ranker's scores into probabilities: a temperature, then soft competition for targets."""

from __future__ import annotations

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.crosslingual.ranking.ranker import softmax

ROUNDS = 10


def temperature(logits: Float64Array, right: Int64Array) -> float:
    """Return the divisor of `logits` [n, c + 1] that makes the `right` columns [n] most likely; −1 is the last."""
    from scipy.optimize import minimize_scalar

    choice = np.where(right >= 0, right, logits.shape[1] - 1)
    rows = np.arange(len(logits))

    def loss(log_t: float) -> float:
        return -float(np.log(softmax(logits / np.exp(log_t))[rows, choice] + 1e-12).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2, 2), method="bounded").x))


def compete(logits: Float64Array, targets: Int64Array, exclusive: bool = True) -> Float64Array:
    """Return probabilities [n, c + 1] after a soft competition in which a target can be linked to one page only.

    `logits` [n, c + 1], the last column for "no link"; `targets` [n, c]. While the probabilities of a target sum to
    more than one, its price rises for all pages (Sinkhorn's scaling, restricted to oversubscribed columns). If it is
    not `exclusive`, a target can be linked to any number of pages.
    """
    unique, column = np.unique(targets, return_inverse=True)
    column = column.reshape(targets.shape)
    price = np.zeros(len(unique))
    probabilities = softmax(logits)
    for _ in range(ROUNDS if exclusive else 0):
        demand = np.bincount(column.ravel(), probabilities[:, :-1].ravel(), len(unique))
        price = np.maximum(0, price + np.log(np.maximum(demand, 1e-9)))
        dearer = logits.copy()
        dearer[:, :-1] -= price[column]
        probabilities = softmax(dearer)
    return probabilities


def calibration_error(p: Float64Array, right: BoolArray, bins: int = 10) -> float:
    """Return the expected calibration error: mean |confidence − accuracy| over bins of equal width, weighted by size.

    `p` [n]: confidences; `right` [n]: whether the predictions were correct.
    """
    numbers = np.minimum((np.asarray(p) * bins).astype(int), bins - 1)
    gaps = np.bincount(numbers, np.asarray(p, np.float64) - right, bins)
    return float(np.abs(gaps).sum() / max(len(numbers), 1))
