"""The mixed variant: a regression over the cosines of encoders, a word alignment, and surface features.

It trains in seconds once the texts are encoded, and ignores word order. Its distribution over the grades is a bell
curve around the predicted grade, as wide as the regression's error on held-out pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor, nn

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.encoders.interface import Encoder
from linker.evaluation.correlation import mse
from linker.scoring.pairs.data import TOP, Pair, folds_of, golds
from linker.scoring.pairs.sts.evidence import CachedVectors, evidence, names, products
from linker.scoring.pairs.sts.scorer import GRADES, PairScorer, Texts

FOLDS = 5


class MixedHead(nn.Module):
    """Maps evidence to logits over the grades: −(k − grade)² / (2 σ²)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, 1)
        self.deviation = nn.Parameter(torch.ones(()))

    def forward(self, found: Tensor) -> Tensor:
        """Return the logits [B, 6] of evidence [B, f]."""
        centre = self.linear(found).clamp(0, TOP)
        grades = torch.arange(GRADES, dtype=centre.dtype)
        logits: Tensor = -0.5 * ((grades - centre) / self.deviation) ** 2
        return logits


@dataclass(frozen=True, slots=True)
class Regression:
    """A candidate regression: whether its evidence includes products of vectors, and its penalty."""

    products: bool
    penalty: float

    def __str__(self) -> str:
        what = "likeness and products of vectors" if self.products else "likeness"
        return f"{what} with the penalty {self.penalty:g}"

    def fit(
        self, found: Float64Array, gold: Float64Array, cosines: Sequence[int]
    ) -> tuple[Float64Array, float]:
        """Return the weights [f] and the offset for evidence [n, f] and grades [n]; `cosines` are encoders' columns.

        Similarity measures can only raise a grade, and the penalty shrinks the weights towards a regression over the
        encoders' cosines alone: both help it generalise to other kinds of pairs.
        """
        if self.products:
            return ridge(found, gold, self.penalty)
        return positive_ridge(found, gold, self.penalty, cosines)


CHOICES = (
    *(Regression(False, penalty) for penalty in (1.0, 10.0, 100.0, 1000.0, 10000.0)),
    *(Regression(True, penalty) for penalty in (1e3, 3e3, 1e4, 3e4)),
)


class MixedScorer(PairScorer):
    """Frozen encoders, and the regression over their evidence; `cosines` come from the first encoder."""

    module: MixedHead

    def __init__(self, encoders: Mapping[str, Encoder], *, with_products: bool = False) -> None:
        """`encoders` are keyed by the names or paths for `load_encoder`; the first aligns words."""
        self.encoders = {name: CachedVectors(encoder) for name, encoder in encoders.items()}
        self.columns = names(list(encoders))
        self._cosines = [self.columns.index(f"cosine of {name}") for name in encoders]
        self._set(with_products)

    def _set(self, with_products: bool) -> None:
        self.with_products = with_products
        width = 2 * sum(vectors.encoder.dim for vectors in self.encoders.values()) if with_products else 0
        self.module = MixedHead(len(self.columns) + width).double()
        self.module.eval()

    def describe(self) -> dict[str, Any]:
        """Return the settings that determine the scores, apart from the weights."""
        prints = {name: vectors.encoder.fingerprint for name, vectors in self.encoders.items()}
        model = {"encoders": prints, "columns": self.columns, "products": self.with_products}
        return {"backbone": ",".join(self.encoders), "model": model}

    def logits(self, pairs: Sequence[Texts]) -> Tensor:
        """Return the logits [B, 6] of one batch."""
        logits: Tensor = self.module(torch.from_numpy(self._evidence(pairs, self.with_products)))
        return logits

    def cosines(self, pairs: Sequence[Texts]) -> Float64Array:
        """Return the cosines, float64 [n], of the first encoder's vectors."""
        return evidence(pairs, self.encoders)[:, self._cosines[0]]

    def fit(self, pairs: Sequence[Pair], dev: Sequence[Pair] = (), seed: int = 0) -> Regression:
        """Fit every regression of `CHOICES`, keep the one with the least squared error on held-out pairs, return it.

        The held-out pairs are `dev` or, without it, one fold at a time; an item is in one fold. Raises InputError if
        a pair has no grade, or if there is only one item to divide into folds.
        """
        gold, dev_gold = np.array(golds(pairs)), np.array(golds(dev))
        fold = folds_of(pairs, FOLDS, seed)
        if not pairs or (not dev and len(np.unique(fold)) == 1):
            raise InputError(
                f"{len(pairs)} pairs that share sentences or ids cannot be divided into folds: give pairs of more "
                "sentences, or dev pairs with `dev` and --set choose=dev"
            )
        texts, others = ([p.texts for p in some] for some in (pairs, dev))
        errors: dict[Regression, float] = {}
        for with_products in (False, True):
            evidence = self._evidence(texts, with_products)
            dev_evidence = self._evidence(others, with_products) if others else None
            for choice in CHOICES:
                if choice.products == with_products:
                    errors[choice] = (
                        self._fold_error(choice, evidence, gold, fold)
                        if dev_evidence is None
                        else _error(dev_evidence, dev_gold, *choice.fit(evidence, gold, self._cosines))
                    )
        best = min(errors, key=lambda choice: errors[choice])
        self._set(best.products)
        weights, offset = best.fit(self._evidence(texts, best.products), gold, self._cosines)
        with torch.no_grad():
            self.module.linear.weight.copy_(torch.from_numpy(weights)[None])
            self.module.linear.bias.fill_(offset)
            self.module.deviation.fill_(max(errors[best], 0.05) ** 0.5)
        return best

    def _evidence(self, pairs: Sequence[Texts], with_products: bool) -> Float64Array:
        found = evidence(pairs, self.encoders)
        return np.hstack([found, products(pairs, self.encoders)]) if with_products else found

    def _fold_error(self, choice: Regression, found: Float64Array, gold: Float64Array, fold: Any) -> float:
        predicted = np.empty(len(gold))
        for number in np.unique(fold):
            rest = fold != number
            weights, offset = choice.fit(found[rest], gold[rest], self._cosines)
            predicted[~rest] = found[~rest] @ weights + offset
        return mse(np.clip(predicted, 0, TOP), gold)


def ridge(found: Float64Array, gold: Float64Array, penalty: float) -> tuple[Float64Array, float]:
    """Return the weights [f] and the offset that minimise Σ (found·w + b − gold)² + penalty · Σ (σ_j w_j)².

    `found` is [n, f], `gold` [n]; σ_j is the standard deviation of a column, so that its unit does not matter. A
    constant column has weight 0.
    """
    standard, scale = _standardise(found)
    centred = gold - gold.mean()
    if len(gold) < found.shape[1]:  # dual form, in which the n × n kernel is smaller
        kernel = standard @ standard.T + penalty * np.eye(len(gold))
        weights = standard.T @ np.linalg.solve(kernel, centred) / scale
    else:
        gram = standard.T @ standard + penalty * np.eye(found.shape[1])
        weights = np.linalg.solve(gram, standard.T @ centred) / scale
    return weights, float(gold.mean() - found.mean(axis=0) @ weights)


def positive_ridge(
    found: Float64Array, gold: Float64Array, penalty: float, free: Sequence[int] = ()
) -> tuple[Float64Array, float]:
    """Return the same as `ridge`, minimised over non-negative weights.

    The columns `free` have no penalty: the larger the penalty, the closer the weights are to a regression on these
    alone.
    """
    standard, scale = _standardise(found)
    size = found.shape[1]
    penalties = np.full(size, penalty)
    penalties[list(free)] = 0
    design = np.vstack([standard, np.diag(penalties**0.5)])
    weights = nnls(design, np.concatenate([gold - gold.mean(), np.zeros(size)]))[0] / scale
    return weights, float(gold.mean() - found.mean(axis=0) @ weights)


def _standardise(found: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the columns with mean 0 and deviation 1 (constant ones: 0), and the deviations (constant ones: 1)."""
    deviation = found.std(axis=0)
    varies = deviation > 1e-9
    scale = np.where(varies, deviation, 1.0)
    return (found - found.mean(axis=0)) / scale * varies, scale


def _error(found: Float64Array, gold: Float64Array, weights: Float64Array, offset: float) -> float:
    return mse(np.clip(found @ weights + offset, 0, TOP), gold)
