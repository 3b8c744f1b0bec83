"""The frozen-feature variant: vectors from a frozen encoder, and a small trained head over a pair.

Each text is encoded separately and only once. A matrix that starts as the identity maps the vectors, which are then
L2-normalised to u and v; |u − v| ⊕ u·v and the cosine are the features, as in the Cross-BERT-GRU. It trains in
seconds, and knows word order only through the encoder's vectors.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from indexes.dtypes import Float64Array
from linker.encoders.interface import Encoder
from linker.scoring.pairs.sts.evidence import CachedVectors
from linker.scoring.pairs.sts.scorer import GradeHead, PairScorer, Texts


class FrozenHead(nn.Module):
    """Maps pairs of vectors to logits over the grades."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.map = nn.Linear(dim, dim, bias=False)
        nn.init.eye_(self.map.weight)
        self.dropout = nn.Dropout(dropout)
        self.head = GradeHead(2 * dim, prior=True)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the logits [B, 6] of vectors `first` [B, d] and `second` [B, d]."""
        u, v = (functional.normalize(self.map(side), dim=1) for side in (first, second))
        features = torch.cat([(u - v).abs(), u * v], dim=1)
        logits: Tensor = self.head(self.dropout(features), (u * v).sum(1))
        return logits


class FrozenScorer(PairScorer):
    """A frozen encoder with a trained head; the vector of each text is computed once and cached."""

    module: FrozenHead

    def __init__(self, name: str, encoder: Encoder, dropout: float = 0.1) -> None:
        """`name` is the name or path by which `load_encoder` finds the encoder again."""
        self.name, self.encoder, self.dropout = name, encoder, dropout
        self.module = FrozenHead(encoder.dim, dropout)
        self.module.eval()
        self.head = self.module.head
        self._vectors = CachedVectors(encoder)

    def describe(self) -> dict[str, Any]:
        """Return the settings that determine the scores, apart from the weights."""
        model = {"dim": self.encoder.dim, "dropout": self.dropout, "fingerprint": self.encoder.fingerprint}
        return {"backbone": self.name, "model": model}

    def logits(self, pairs: Sequence[Texts]) -> Tensor:
        """Return the logits [B, 6] of one batch, with gradients of the head if torch records them."""
        logits: Tensor = self.module(*self._sides(pairs))
        return logits

    def cosines(self, pairs: Sequence[Texts]) -> Float64Array:
        """Return the cosines, float64 [n], of the encoder's vectors."""
        u, v = self._sides(pairs)
        return np.asarray((u * v).sum(1).numpy(), np.float64)

    def _sides(self, pairs: Sequence[Texts]) -> tuple[Tensor, Tensor]:
        """Return the vectors [n, d] of the first and the second texts; new texts are encoded together, by length."""
        first, second = map(torch.from_numpy, self._vectors.sides(pairs))
        return first, second
