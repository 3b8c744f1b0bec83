"""Logistic regression with a ridge, by L-BFGS: about ten inputs, and one example per judged link."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array

RIDGE = 1.0


def fit(
    z: Float64Array,
    positive: BoolArray,
    ridge: float = RIDGE,
    prior: Float64Array | None = None,
    *,
    weights: Float64Array | None = None,
    options: Mapping[str, Any] | None = None,
) -> Float64Array:
    """Return the weights of the inputs and then the offset, float64 [f + 1], from z [n, f] and `positive` [n].

    Minimises the sum of the log losses plus ridge / 2 × the squared distance of the weights from a `prior` [f + 1],
    or from zero, excluding the offset; the inputs should be standardised. With example `weights` [n], it is the
    weighted sum, divided by their total as in scikit-learn. `options`: for SciPy's L-BFGS-B.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    sign = np.where(positive, 1.0, -1.0)
    start = np.zeros(z.shape[1] + 1) if prior is None else prior
    times, total = (np.ones(len(z)), 1.0) if weights is None else (weights, weights.sum())

    def loss(w: Float64Array) -> tuple[float, Float64Array]:
        margin = sign * (z @ w[:-1] + w[-1])
        pull = -times * sign * expit(-margin)
        away = w[:-1] - start[:-1]
        value = times @ np.logaddexp(0, -margin) + ridge / 2 * away @ away
        return float(value / total), np.append(z.T @ pull + ridge * away, pull.sum()) / total

    settings: Any = dict(options or {})
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=settings)
    return np.asarray(found.x)
