"""The frozen-feature variant: vectors of an encoder that is not trained, and a small head over what they say of a pair.

The texts are read apart and only once each: u and v of length 1, mapped by a matrix that starts as the identity; then
|u − v| ⊕ u·v and their cosine go where the Cross-BERT-GRU's features go. It knows nothing of the order of words that
the encoder does not tell, and trains in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from indexes.dtypes import Float64Array
from linker.encoders.interface import Encoder
from linker.pairs.sts.scorer import GradeHead, PairScorer, Texts


class FrozenHead(nn.Module):
    """Pairs of vectors to logits over the grades."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.map = nn.Linear(dim, dim, bias=False)
        nn.init.eye_(self.map.weight)
        self.dropout = nn.Dropout(dropout)
        self.head = GradeHead(2 * dim, prior=True)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Map vectors [B, d] and [B, d] to logits [B, 6]."""
        u, v = (functional.normalize(self.map(side), dim=1) for side in (first, second))
        features = torch.cat([(u - v).abs(), u * v], dim=1)
        logits: Tensor = self.head(self.dropout(features), (u * v).sum(1))
        return logits


class FrozenScorer(PairScorer):
    """An encoder that stays as it is, and the head; each text is encoded once and its vector kept."""

    module: FrozenHead

    def __init__(self, name: str, encoder: Encoder, dropout: float = 0.1) -> None:
        """`name` is how to load the encoder again."""
        self.name, self.encoder, self.dropout = name, encoder, dropout
        self.module = FrozenHead(encoder.dim, dropout)
        self.module.eval()
        self.head = self.module.head
        self._vectors: dict[str, Tensor] = {}

    def describe(self) -> dict[str, Any]:
        """Return what, with the weights, decides the scores."""
        model = {"dim": self.encoder.dim, "dropout": self.dropout, "fingerprint": self.encoder.fingerprint}
        return {"backbone": self.name, "model": model}

    def logits(self, pairs: Sequence[Texts]) -> Tensor:
        """Return the logits [B, 6] of one batch, with gradients of the head where torch records them."""
        logits: Tensor = self.module(*self._sides(pairs))
        return logits

    def cosines(self, pairs: Sequence[Texts]) -> Float64Array:
        """Return the cosines [n] of the encoder's vectors."""
        u, v = self._sides(pairs)
        return np.asarray((u * v).sum(1).numpy(), np.float64)

    def _sides(self, pairs: Sequence[Texts]) -> tuple[Tensor, Tensor]:
        """Return the vectors [n, d] of both sides; those that are new are encoded together, short ones first."""
        new = sorted(
            {text for pair in pairs for text in pair} - self._vectors.keys(), key=lambda t: (len(t), t)
        )
        if new:
            vectors = torch.from_numpy(np.array(self.encoder.encode(new)))
            self._vectors.update(zip(new, vectors, strict=True))
        first, second = (torch.stack([self._vectors[pair[side]] for pair in pairs]) for side in (0, 1))
        return first, second
