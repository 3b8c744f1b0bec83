"""From a ranker's scores to probabilities that mean what they say.

A temperature, then soft competition for targets, then Platt's (1999) sigmoid; all fitted on out-of-fold lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.crosslingual.ranking.ranker import softmax

ROUNDS = 10
EDGE = 1e-4  # probabilities nearer to 0 or 1 than this are taken as this
STIFFNESS = 2.0  # ridge of Platt's two numbers towards slope 1 and offset 0


@dataclass(frozen=True, slots=True)
class Platt:
    """p → σ(slope · logit p + offset): keeps the order."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, p: Float64Array) -> Float64Array:
        """Return calibrated probabilities."""
        return np.asarray(expit(self.slope * _logit(p) + self.offset))


def fit_platt(p: Float64Array, right: BoolArray) -> Platt:
    """Fit on the probabilities of pages' best candidates, and whether each was the right one."""
    from scipy.optimize import minimize

    x, sign = _logit(p), np.where(right, 1.0, -1.0)

    def loss(v: Float64Array) -> float:
        ridge = STIFFNESS / 2 * ((v[0] - 1) ** 2 + v[1] ** 2)
        return float(np.logaddexp(0, -sign * (v[0] * x + v[1])).sum() + ridge)

    slope, offset = minimize(loss, [1.0, 0.0], method="L-BFGS-B", bounds=[(0.05, 20), (-20, 20)]).x
    return Platt(float(slope), float(offset))


def temperature(logits: Float64Array, right: Int64Array) -> float:
    """Return the divisor of `logits` [n, c + 1] at which they are most likely; `right` −1 is the last column."""
    from scipy.optimize import minimize_scalar

    choice = np.where(right >= 0, right, logits.shape[1] - 1)
    rows = np.arange(len(logits))

    def loss(log_t: float) -> float:
        return -float(np.log(softmax(logits / np.exp(log_t))[rows, choice] + 1e-12).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2, 2), method="bounded").x))


def compete(logits: Float64Array, targets: Int64Array) -> Float64Array:
    """Return probabilities [n, c + 1] when a target can be the counterpart of one page only.

    `logits` [n, c + 1], the last for "no link"; `targets` [n, c]. A target wanted by more than one page in sum gets
    dearer for all of them until it is not (Sinkhorn's scaling, of columns that are over-subscribed only).
    """
    unique, column = np.unique(targets, return_inverse=True)
    column = column.reshape(targets.shape)
    price = np.zeros(len(unique))
    probabilities = softmax(logits)
    for _ in range(ROUNDS):
        wanted = np.bincount(column.ravel(), probabilities[:, :-1].ravel(), len(unique))
        price = np.maximum(0, price + np.log(np.maximum(wanted, 1e-9)))
        dearer = logits.copy()
        dearer[:, :-1] -= price[column]
        probabilities = softmax(dearer)
    return probabilities


def calibration_error(p: Float64Array, right: BoolArray, bins: int = 10) -> float:
    """Return the expected calibration error: mean |confidence − share right| over bins of equal width, by size."""
    which = np.minimum((np.asarray(p) * bins).astype(int), bins - 1)
    gaps = np.bincount(which, np.asarray(p, np.float64) - right, bins)
    return float(np.abs(gaps).sum() / max(len(which), 1))


def _logit(p: Float64Array) -> Float64Array:
    return np.asarray(logit(np.clip(p, EDGE, 1 - EDGE)))
