"""The small network that maps the features of a pair to a similarity; it is stored and evaluated as plain arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from indexes.dtypes import Float64Array
from indexes.errors import importing

LAYERS = ("hidden", "hidden_bias", "out", "out_bias")


@dataclass(frozen=True, slots=True)
class FusionConfig:
    """Features → `hidden` logistic units → 1, averaged over `members` networks with different seeds.

    A linear output minimises the squared error; a sigmoid output, the cross-entropy with the similarity as probability.
    """

    hidden: int = 32
    output: Literal["linear", "sigmoid"] = "linear"
    solver: Literal["adam", "lbfgs"] = "adam"
    lr: float = 1e-3  # learning rate of Adam
    penalty: float = 1e-4  # L2 penalty on weights
    epochs: int = 200
    members: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FusionNetwork:
    """A trained network: the features' `mean` and `scale` [f], and the weights of its m members.

    `hidden` is [m, f, h], `hidden_bias` and `out` are [m, h], `out_bias` is [m]; all are float64.
    """

    mean: Float64Array
    scale: Float64Array
    hidden: Float64Array
    hidden_bias: Float64Array
    out: Float64Array
    out_bias: Float64Array
    output: str

    def predict(self, features: Float64Array) -> Float64Array:
        """Return the similarities, float64 [n] clipped to [0, 1], of features [n, f]."""
        standard = (features - self.mean) / self.scale
        inner = _logistic(np.einsum("nf,mfh->mnh", standard, self.hidden) + self.hidden_bias[:, None])
        values = np.einsum("mnh,mh->mn", inner, self.out) + self.out_bias[:, None]
        if self.output == "sigmoid":
            values = _logistic(values)
        return np.asarray(values.mean(axis=0).clip(0, 1), np.float64)

    def tensors(self) -> dict[str, Float64Array]:
        """Return the arrays by name, as expected by `of_tensors`."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in ("mean", "scale", *LAYERS)}

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Float64Array], output: str) -> FusionNetwork:
        """Return the network from stored arrays. Raises KeyError if one is missing."""
        return cls(**{name: tensors[name] for name in ("mean", "scale", *LAYERS)}, output=output)


def fit_fusion(features: Float64Array, similarities: Float64Array, config: FusionConfig) -> FusionNetwork:
    """Return a network trained on features [n, f], standardised, and similarities [n]. Raises MissingExtraError."""
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    scale = np.where(deviation > 1e-12, deviation, 1.0)
    members = [
        _fit_member((features - mean) / scale, similarities, config, config.seed + number)
        for number in range(config.members)
    ]
    layers = {
        name: np.stack([member[number] for member in members]).astype(np.float64)
        for number, name in enumerate(LAYERS)
    }
    return FusionNetwork(mean, scale, **layers, output=config.output)


def _fit_member(
    features: Float64Array, similarities: Float64Array, config: FusionConfig, seed: int
) -> tuple[Any, ...]:
    with importing("training the fusion of features (by scikit-learn)", "entities"):
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier, MLPRegressor
    network = (MLPClassifier if config.output == "sigmoid" else MLPRegressor)(
        hidden_layer_sizes=(config.hidden,),
        activation="logistic",
        solver=config.solver,
        learning_rate_init=config.lr,
        alpha=config.penalty,
        max_iter=config.epochs,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is fixed on purpose
        if config.output == "sigmoid":  # each pair is a positive with weight y and a negative with 1 − y
            count = len(similarities)
            labels = np.repeat([1, 0], count)
            weights = np.concatenate([similarities, 1 - similarities])
            network.fit(np.concatenate([features, features]), labels, sample_weight=weights)
        else:
            network.fit(features, similarities)
    (hidden, out), (hidden_bias, out_bias) = network.coefs_, network.intercepts_
    return hidden, hidden_bias, out[:, 0], out_bias[0]


def _logistic(values: Float64Array) -> Float64Array:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)), np.float64)  # no overflow
