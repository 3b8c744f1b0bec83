"""The mixed variant: a ridge regression over the cosines of encoders, their word alignments, and what both texts write.

It trains in seconds once the encoders have read the texts, and knows no word order. Its distribution over the grades
is a bell curve around the predicted grade, as wide as the regression errs on held-out folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from indexes.dtypes import Float64Array, Int64Array
from linker.encoders.interface import Encoder
from linker.evaluation.correlation import mse
from linker.pairs.data import TOP
from linker.pairs.sts.evidence import Remembered, evidence, names
from linker.pairs.sts.scorer import GRADES, PairScorer, Texts

PENALTIES = (1.0, 10.0, 100.0, 1000.0)  # on squared weights of standardised evidence; folds choose
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


class MixedScorer(PairScorer):
    """Encoders that are not trained, and the regression over their evidence; the first one's cosine is `cosines`."""

    module: MixedHead

    def __init__(self, encoders: Mapping[str, Encoder]) -> None:
        """`encoders` are by the names or paths by which `load_encoder` finds them again."""
        self.encoders = {name: Remembered(encoder) for name, encoder in encoders.items()}
        self.columns = names(list(encoders))
        self.module = MixedHead(len(self.columns)).double()
        self.module.eval()

    def describe(self) -> dict[str, Any]:
        """Return what decides the scores, apart from the weights."""
        prints = {name: vectors.encoder.fingerprint for name, vectors in self.encoders.items()}
        return {"backbone": ",".join(self.encoders), "model": {"encoders": prints, "columns": self.columns}}

    def logits(self, pairs: Sequence[Texts]) -> Tensor:
        """Return the logits [B, 6] of one batch."""
        logits: Tensor = self.module(torch.from_numpy(evidence(pairs, self.encoders)))
        return logits

    def cosines(self, pairs: Sequence[Texts]) -> Float64Array:
        """Return the cosines, float64 [n], of the first encoder's vectors."""
        return evidence(pairs, self.encoders)[:, self.columns.index(f"cosine of {next(iter(self.encoders))}")]

    def fit(self, pairs: Sequence[Texts], gold: Float64Array, seed: int = 0) -> float:
        """Set the weights by ridge regression on grades `gold` [n]; return the penalty that folds chose."""
        found = evidence(pairs, self.encoders)
        fold = np.random.default_rng([seed, 3]).permutation(len(gold)) % FOLDS
        errors = {penalty: _held_out_error(found, gold, fold, penalty) for penalty in PENALTIES}
        best = min(errors, key=lambda penalty: errors[penalty])
        weights, offset = ridge(found, gold, best)
        with torch.no_grad():
            self.module.linear.weight.copy_(torch.from_numpy(weights)[None])
            self.module.linear.bias.fill_(offset)
            self.module.deviation.fill_(max(errors[best], 0.05) ** 0.5)
        return best


def ridge(found: Float64Array, gold: Float64Array, penalty: float) -> tuple[Float64Array, float]:
    """Return the weights [f] and the offset that minimise Σ (found·w + b − gold)² + penalty · Σ (σ_j w_j)².

    `found` is [n, f], `gold` [n]; σ_j is the deviation of a column, so that its unit does not matter. A constant column
    has weight 0.
    """
    mean, deviation = found.mean(axis=0), found.std(axis=0)
    varies = deviation > 1e-9
    scale = np.where(varies, deviation, 1.0)
    standard = (found - mean) / scale * varies
    gram = standard.T @ standard + penalty * np.eye(found.shape[1])
    weights = np.linalg.solve(gram, standard.T @ (gold - gold.mean())) / scale
    return weights, float(gold.mean() - mean @ weights)


def _held_out_error(found: Float64Array, gold: Float64Array, fold: Int64Array, penalty: float) -> float:
    """Return the mean squared error of the grades that are predicted out of fold."""
    predicted = np.empty(len(gold))
    for number in np.unique(fold):
        weights, offset = ridge(found[fold != number], gold[fold != number], penalty)
        predicted[fold == number] = found[fold == number] @ weights + offset
    return mse(np.clip(predicted, 0, TOP), gold)
