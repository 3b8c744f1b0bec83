"""The learned ranker: conditional logistic regression over the candidates of a page and "no link".

P(candidate j | page) = exp(w·x_j) / (exp(b) + Σ exp(w·x)), McFadden's conditional logit (1974). Unlike a logistic
regression over single candidates, it samples no negatives, and the probabilities of a page sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from indexes.dtypes import Float64Array, Int64Array

Features = npt.NDArray[np.float32]
CLIP = 8.0  # standard deviations
PENALTY = 10.0  # ridge penalty
LISTS = 2000  # lists scored at a time, since standardised features take as much memory as the features
OWN = 20  # a ranker's own standardisation counts as much as this many lists
# Each training list is used again without its target, with this weight, to teach when there is no link.
SEEN_WITHOUT = 0.02


@dataclass(frozen=True, eq=False)
class LinearRanker:
    """A linear ranker: `centre`, `scale` and `weights`, each [f], of the features; `none` is the score of "no link"."""

    names: tuple[str, ...]
    centre: Float64Array
    scale: Float64Array
    weights: Float64Array
    none: float
    temperature: float = 1.0

    def standard(self, features: Features) -> Features:
        """Return features [n, c, f] with mean 0 and deviation 1 on the training lists, clipped: float32 [n, c, f]."""
        out = (features - self.centre.astype(np.float32)) / self.scale.astype(np.float32)
        return np.asarray(np.clip(out, -CLIP, CLIP), np.float32)

    def restandardise(self, features: Features) -> LinearRanker:
        """Return the ranker restandardised on the lists `features` [n, c, f]; its own scale counts as 20 lists.

        Scores are generally larger with one dictionary or language than with another. Nearly all candidates are wrong,
        so the share of pages with a counterpart hardly matters.
        """
        if not len(features):  # all pages are linked already: there is nothing to adapt to
            return self
        flat = features.reshape(-1, features.shape[-1])
        mean, variance = flat.mean(0, dtype=np.float64), flat.var(0, dtype=np.float64)
        part = len(features) / (len(features) + OWN)
        centre = part * mean + (1 - part) * self.centre
        variance = part * (variance + (mean - centre) ** 2) + (1 - part) * (
            self.scale**2 + (self.centre - centre) ** 2
        )
        return replace(self, centre=centre, scale=np.sqrt(variance))

    def logits(self, features: Features) -> Float64Array:
        """Return scores of `features` [n, c, f]: float64 [n, c + 1], divided by the temperature, "no link" last."""
        parts = [features[begin : begin + LISTS] for begin in range(0, max(len(features), 1), LISTS)]
        scores = np.concatenate([self.standard(part) @ self.weights.astype(np.float32) for part in parts])
        return with_none(scores.astype(np.float64), self.none) / self.temperature


def with_none(scores: Float64Array, none: float) -> Float64Array:
    """Return `scores` [n, c] with the score of "no link" as the last column: [n, c + 1]."""
    return np.concatenate([scores, np.full((len(scores), 1), none)], axis=1)


def fit_ranker(
    names: Sequence[str],
    features: Features,
    right: Int64Array,
    *,
    penalty: float = PENALTY,
    prior: LinearRanker | None = None,
) -> LinearRanker:
    """Return a ranker fitted on `features` [n, c, f]; `right` [n] is the correct candidate's position, −1 for none.

    `penalty` is the ridge penalty, towards zero or the weights of a `prior`, whose standardisation is used as well.
    """
    flat = features.reshape(-1, features.shape[-1])
    start = LinearRanker(
        tuple(names),
        flat.mean(0, dtype=np.float64),
        flat.std(0, dtype=np.float64) + 1e-6,
        np.zeros(flat.shape[1]),
        0.0,
    )
    if prior is not None:
        start = replace(start, **inherit(start, prior, ("centre", "scale", "weights")), none=prior.none)
    weights, none = _minimise(start.standard(features), right, penalty, start)
    return replace(start, weights=weights, none=none)


def inherit(start: Any, prior: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return the arrays `keys` of `start`, with the values of `prior` for the features that it has, too."""
    position = {name: i for i, name in enumerate(prior.names)}
    values = {key: getattr(start, key).copy() for key in keys}
    for i, name in enumerate(start.names):
        if (j := position.get(name)) is not None:
            for key, value in values.items():
                value[i] = getattr(prior, key)[j]
    return values


def _minimise(
    x: Features, right: Int64Array, penalty: float, start: LinearRanker
) -> tuple[Float64Array, float]:
    from scipy.optimize import minimize

    objective = _Objective(x, right, penalty, start.weights)
    first = np.append(start.weights, start.none)
    solution = minimize(objective, first, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    return np.asarray(solution[:-1]), float(solution[-1])


class _Objective:
    """The penalised negative log likelihood and its gradient; "no link" is right if a list lacks its target."""

    def __init__(self, x: Features, right: Int64Array, penalty: float, centre: Float64Array) -> None:
        self.x, self.penalty, self.centre = x, penalty, centre
        n, c, _ = x.shape
        self.choice = np.where(right >= 0, right, c)
        self.has = np.flatnonzero(right >= 0)
        self.rows = np.arange(n)

    def __call__(self, w: Float64Array) -> tuple[float, Float64Array]:
        logits = with_none((self.x @ w[:-1].astype(np.float32)).astype(np.float64), w[-1])
        loss, pull = self._part(logits, self.choice, np.ones(len(logits)))
        without = logits[self.has]
        without[np.arange(len(without)), self.choice[self.has]] = -np.inf
        nothing = np.full(len(without), logits.shape[1] - 1)
        more, push = self._part(without, nothing, np.full(len(without), SEEN_WITHOUT))
        pull[self.has] += push
        gradient = np.einsum("nc,ncf->f", pull[:, :-1].astype(np.float32), self.x, optimize=True)
        away = w[:-1] - self.centre
        loss += more + 0.5 * self.penalty * float(away @ away)
        return loss, np.append(gradient + self.penalty * away, pull[:, -1].sum())

    @staticmethod
    def _part(logits: Float64Array, choice: Int64Array, weight: Float64Array) -> tuple[float, Float64Array]:
        """Return the loss of choosing `choice` [n], and its derivative with respect to the logits [n, c + 1]."""
        total = logsumexp(logits, axis=1)
        rows = np.arange(len(logits))
        loss = float(weight @ (total - logits[rows, choice]))
        pull = np.exp(logits - total[:, None])
        pull[rows, choice] -= 1
        return loss, pull * weight[:, None]
