"""The small network that turns the features of a pair into one similarity; it is stored and evaluated as arrays."""

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
    """Features → `hidden` logistic units → 1, averaged over `members` networks of different seeds.

    A linear output learns the squared error, a sigmoid one the cross-entropy with the similarity as probability.
    """

    hidden: int = 32
    output: Literal["linear", "sigmoid"] = "linear"
    solver: Literal["adam", "lbfgs"] = "adam"
    lr: float = 1e-3  # of Adam
    penalty: float = 1e-4  # of squared weights
    epochs: int = 200
    members: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FusionNetwork:
    """The features' mean and scale [f], and the weights of each member: [m, f, h], [m, h], [m, h], [m]."""

    mean: Float64Array
    scale: Float64Array
    hidden: Float64Array
    hidden_bias: Float64Array
    out: Float64Array
    out_bias: Float64Array
    output: str

    def predict(self, features: Float64Array) -> Float64Array:
        """Return similarities [n], clipped to [0, 1], of features [n, f]."""
        standard = (features - self.mean) / self.scale
        inner = _logistic(np.einsum("nf,mfh->mnh", standard, self.hidden) + self.hidden_bias[:, None])
        values = np.einsum("mnh,mh->mn", inner, self.out) + self.out_bias[:, None]
        if self.output == "sigmoid":
            values = _logistic(values)
        return np.asarray(values.mean(axis=0).clip(0, 1), np.float64)

    def tensors(self) -> dict[str, Float64Array]:
        """Return what `of_tensors` takes."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in ("mean", "scale", *LAYERS)}

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Float64Array], output: str) -> FusionNetwork:
        """Make a network of stored arrays."""
        return cls(**{name: tensors[name] for name in ("mean", "scale", *LAYERS)}, output=output)


def fit_fusion(features: Float64Array, similarities: Float64Array, config: FusionConfig) -> FusionNetwork:
    """Learn from features [n, f] and similarities [n] in [0, 1]; the scale is that of these features.

    Raises MissingExtraError without scikit-learn.
    """
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    scale = np.where(deviation > 1e-12, deviation, 1.0)
    members = [
        _fit_member((features - mean) / scale, similarities, config, config.seed + number)
        for number in range(config.members)
    ]
    layers = {
        name: np.stack([member[place] for member in members]).astype(np.float64)
        for place, name in enumerate(LAYERS)
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
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is a setting
        if config.output == "sigmoid":  # each pair is alike with weight y and unlike with 1 − y
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
