"""Scorers of pairs: the grades 0–5, the head that returns their distribution, and the base class of all scorers."""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from indexes.dtypes import Float32Array, Float64Array
from linker.base.progress import bar
from linker.scoring.pairs.data import TOP

Texts = tuple[str, str]
GRADES = 6
BATCH = 32


def hard_labels(gold: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the grade 0–5 nearest to each score: `gold` [n] to int64 [n]; halves round up."""
    return np.clip(np.floor(np.asarray(gold, np.float64) + 0.5), 0, GRADES - 1).astype(np.int64)


def soft_labels(gold: npt.ArrayLike) -> Float32Array:
    """Return probabilities of the grades, float32 [n, 6]: each score of `gold` [n] is split between its neighbours.

    The expected grade equals the score.
    """
    y = np.clip(np.asarray(gold, np.float64), 0, GRADES - 1)
    distance = np.abs(y[:, None] - np.arange(GRADES))
    return np.asarray(np.maximum(0, 1 - distance), np.float32)


def expected_value(probabilities: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return Σ k·p_k / 5 of distributions [n, 6], float64 [n]: a similarity from 0 to 1."""
    return np.asarray(np.asarray(probabilities, np.float64) @ np.arange(GRADES) / TOP, np.float64)


def argmax_value(probabilities: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the most probable grade / 5 of distributions [n, 6], float64 [n]."""
    return np.asarray(np.argmax(probabilities, axis=1) / TOP, np.float64)


class GradeHead(nn.Module):
    """Maps features to logits over the grades; with a prior, these correct a distribution set by a cosine."""

    def __init__(self, size: int, *, prior: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(size, GRADES)
        # Slope and offset of the grade predicted from a cosine, and the log precision of that prediction.
        self.prior = nn.Parameter(torch.tensor([TOP, 0.0, 0.0])) if prior else None
        if prior:
            nn.init.zeros_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)

    def forward(self, features: Tensor, cosines: Tensor | None = None) -> Tensor:
        """Return the logits [B, 6] of features [B, d] and, for a prior, cosines [B]."""
        logits: Tensor = self.linear(features)
        if self.prior is None or cosines is None:
            return logits
        slope, offset, sharpness = self.prior
        centre = (slope * cosines + offset)[:, None]
        grades = torch.arange(GRADES, device=cosines.device, dtype=centre.dtype)
        corrected: Tensor = logits - 0.5 * sharpness.exp() * (centre - grades) ** 2
        return corrected


class PairScorer(abc.ABC):
    """A trainable scorer of pairs of texts; `module` holds all its weights, including those of `head`."""

    module: nn.Module
    head: GradeHead

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the settings that determine the scores, apart from weights and tokenizer."""

    @abc.abstractmethod
    def logits(self, pairs: Sequence[Texts]) -> Tensor:
        """Return the logits [B, 6] of one batch, with gradients if torch records them."""

    @abc.abstractmethod
    def cosines(self, pairs: Sequence[Texts]) -> Float64Array:
        """Return the cosines, float64 [n], of the two texts of each pair, encoded separately."""

    def probabilities(
        self, pairs: Sequence[Texts], *, batch_size: int = BATCH, progress: bool = False
    ) -> Float32Array:
        """Return the distributions over the grades 0–5, float32 [n, 6], in the order of `pairs`."""
        distributions = np.zeros((len(pairs), GRADES), dtype=np.float32)
        # Pairs of similar length go into one batch, which saves padding.
        order = np.argsort([len(a) + len(b) for a, b in pairs], kind="stable")
        training = self.module.training
        self.module.eval()
        with torch.inference_mode(), bar(len(pairs) if progress else 0, "scoring", "pairs") as shown:
            for start in range(0, len(pairs), batch_size):
                rows = order[start : start + batch_size]
                logits = self.logits([pairs[row] for row in rows])
                distributions[rows] = torch.softmax(logits, dim=1).numpy()
                shown.update(len(rows))
        self.module.train(training)
        return distributions

    def score(self, pairs: Sequence[Texts]) -> Float32Array:
        """Return each pair's expected similarity from 0 to 1, float32 [n], as the `Reranker` protocol requires."""
        return expected_value(self.probabilities(pairs)).astype(np.float32)
