"""Turning a ranker's scores into calibrated probabilities.

A temperature, soft competition for targets and Platt's (1999) sigmoid, in this order, fitted on out-of-fold lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.crosslingual.ranking.ranker import softmax

ROUNDS = 10
EDGE = 1e-4  # probabilities are clipped to at least this distance from 0 and 1
STIFFNESS = 2.0  # ridge penalty that pulls the slope to 1 and the offset to 0


@dataclass(frozen=True, slots=True)
class Platt:
    """The monotone map p → σ(slope · logit p + offset)."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, p: Float64Array) -> Float64Array:
        """Return calibrated probabilities in the shape of `p` [...]."""
        return np.asarray(expit(self.slope * _logit(p) + self.offset))


def fit_platt(p: Float64Array, right: BoolArray) -> Platt:
    """Fit the sigmoid on the probabilities `p` [n] of the top candidates and whether these were `right` [n]."""
    from scipy.optimize import minimize

    x, sign = _logit(p), np.where(right, 1.0, -1.0)

    def loss(v: Float64Array) -> float:
        ridge = STIFFNESS / 2 * ((v[0] - 1) ** 2 + v[1] ** 2)
        return float(np.logaddexp(0, -sign * (v[0] * x + v[1])).sum() + ridge)

    slope, offset = minimize(loss, [1.0, 0.0], method="L-BFGS-B", bounds=[(0.05, 20), (-20, 20)]).x
    return Platt(float(slope), float(offset))


def temperature(logits: Float64Array, right: Int64Array) -> float:
    """Return the divisor of `logits` [n, c + 1] that makes the `right` columns [n] most likely; −1 is the last."""
    from scipy.optimize import minimize_scalar

    choice = np.where(right >= 0, right, logits.shape[1] - 1)
    rows = np.arange(len(logits))

    def loss(log_t: float) -> float:
        return -float(np.log(softmax(logits / np.exp(log_t))[rows, choice] + 1e-12).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2, 2), method="bounded").x))


def compete(logits: Float64Array, targets: Int64Array) -> Float64Array:
    """Return probabilities [n, c + 1] after a soft competition in which a target can be linked to one page only.

    `logits` [n, c + 1], the last column for "no link"; `targets` [n, c]. While the probabilities of a target sum to
    more than one, its price rises for all pages (Sinkhorn's scaling, restricted to oversubscribed columns).
    """
    unique, column = np.unique(targets, return_inverse=True)
    column = column.reshape(targets.shape)
    price = np.zeros(len(unique))
    probabilities = softmax(logits)
    for _ in range(ROUNDS):
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


def _logit(p: Float64Array) -> Float64Array:
    return np.asarray(logit(np.clip(p, EDGE, 1 - EDGE)))
