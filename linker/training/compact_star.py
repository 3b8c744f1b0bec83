"""The star's relay over distinct tokens with their counts: the vectors of `StarTransformer` at a third of its cost.

While the ring's output is zero, as it is initially, a token's weight depends only on its type and its text. A text of
1,000 tokens has 400 types, so the relay can process whole documents in training. Shapes: B texts of at most U types,
d dimensions, h heads, f inputs of the keys in addition to the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from linker.encoders.configs import StarConfig
from linker.encoders.entmax import MIN_EPSILON
from linker.encoders.star import StarTransformer

STEPS = 30  # maximum number of steps of Newton's method
PART = 120_000  # positions per pass with padding; passes are large, since each computes a gradient of the whole table


@dataclass(frozen=True)
class Types:
    """Texts as distinct tokens: ids (int64 [B, U], 0: none), counts and first positions, 0 to 1 (float32 [B, U])."""

    ids: Tensor
    counts: Tensor
    first: Tensor

    @classmethod
    def of(cls, texts: Sequence[np.ndarray[Any, Any]]) -> Types:
        """Count the distinct tokens of each text, given as token ids."""
        found = [np.unique(text, return_index=True, return_counts=True) for text in texts]
        width = max(1, *(len(ids) for ids, _, _ in found))
        ids = np.zeros((len(texts), width), dtype=np.int64)
        counts, first = np.zeros((2, len(texts), width), dtype=np.float32)
        for row, (types, index, count) in enumerate(found):
            ids[row, : len(types)], counts[row, : len(types)] = types, count
            first[row, : len(types)] = index / max(1, len(texts[row]))
        return cls(*(torch.from_numpy(part) for part in (ids, counts, first)))


class CountedEntmax(torch.autograd.Function):
    """α-entmax over positions that occur `counts` times: returns their masses, count × probability, which sum to 1.

    The same as `linker.encoders.entmax` on repeated scores. Scores and counts are [..., U], α is [..., 1].
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: Tensor, counts: Tensor) -> Tensor:
        """Return the masses, by Newton's method."""
        epsilon = (alpha - 1).clamp(min=MIN_EPSILON)
        inside = counts > 0
        x = scores.masked_fill(~inside, -torch.inf)
        x = x - x.amax(-1, keepdim=True)
        n = counts.sum(-1, keepdim=True)
        mean = (torch.where(inside, x, 0.0) * counts).sum(-1, keepdim=True) / n
        shift = (mean - torch.expm1(-epsilon * n.log()) / epsilon).clamp(min=0.0)
        for _ in range(STEPS):
            y = ((x - shift) * epsilon).clamp_(min=-1)
            p = (y.log1p() / epsilon).exp_()
            fall = counts * p / y.add_(1).clamp_(min=1e-30)
            mass = (p * counts).sum(-1, keepdim=True)
            step = -torch.expm1(-epsilon * mass.log()) / epsilon * mass / fall.sum(-1, keepdim=True)
            if bool((mass <= 1 + 1e-5).all()):
                break
            shift = shift + step.clamp_(min=0)
        masses = p * counts / mass
        ctx.save_for_backward(masses, counts, epsilon)
        return masses

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients with respect to scores and α."""
        masses, counts, epsilon = ctx.saved_tensors
        p = masses / counts.clamp(min=1)
        support = p > 0
        log_p = torch.where(support, p, 1.0).log()
        skewed = torch.where(support, counts * ((1 - epsilon) * log_p).exp(), 0.0)  # count · p^(2 − α)
        centred = grads[0] - (skewed * grads[0]).sum(-1, keepdim=True) / skewed.sum(-1, keepdim=True)
        t = -epsilon * log_p
        remainder = torch.where(
            t < 0.05, 0.5 + t / 6 + t * t / 24, (torch.expm1(t) - t) / t.square().clamp(min=1e-9)
        )
        for_alpha = -(masses * log_p.square() * remainder * centred).sum(-1, keepdim=True)
        return skewed * centred, for_alpha, None


class CompactStar(nn.Module):
    """A Star Transformer's embedding and relay as a map from types to normalised vectors, with more inputs to the keys.

    `inputs`, float32 [f, h], starts at zero and weights the features of a type, which `FEATURES` lists.
    """

    FEATURES = ("idf", "count", "first")

    def __init__(
        self, vectors: np.ndarray[Any, Any], config: StarConfig, idf: np.ndarray[Any, Any], seed: int
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.star = StarTransformer(config, len(vectors))
        with torch.no_grad():
            self.star.embedding.weight.copy_(torch.from_numpy(vectors))
        self.register_buffer("idf", torch.from_numpy(idf.astype(np.float32)))
        self.inputs = nn.Parameter(torch.zeros(len(self.FEATURES), config.heads))
        self.mean_only = False  # whether the vector is the plain mean

    @property
    def relay(self) -> Any:
        """The star's relay."""
        return self.star.layers[0].relay

    def forward(self, types: Types) -> Tensor:
        """Return vectors, float32 [B, d], normalised."""
        table = self.star.embedding.weight
        normed = None if self.mean_only else functional.layer_norm(table, table.shape[-1:])
        used = (types.counts > 0).sum(1)
        order = torch.argsort(used, descending=True)
        parts, start = [], 0
        while start < len(order):
            width = max(1, int(used[order[start]]))
            rows = order[start : start + max(1, PART // width)]
            part = Types(*(x[rows, :width] for x in (types.ids, types.counts, types.first)))
            parts.append(self._vectors(part, table, normed))
            start += len(rows)
        found = torch.cat(parts)[torch.argsort(order)]
        return functional.normalize(found, dim=-1)

    def _vectors(self, types: Types, table: Tensor, normed: Tensor | None) -> Tensor:
        mean = self.mean(types, table)
        if normed is None:
            return mean
        masses = self.masses(types, normed, mean)  # [B, h, 1 + U]
        bags = [_bag(types.ids, table, weights.contiguous()) for weights in masses[:, :, 1:].unbind(1)]
        mixed = masses[:, :, :1] * mean[:, None] + torch.stack(bags, 1)  # [B, h, d]
        relay = self.relay
        values = torch.einsum("bhd,hed->bhe", mixed, relay._matrices(relay.value))
        out: Tensor = relay.out(values.flatten(-2) + relay.value.bias)
        return out

    def mean(self, types: Types, table: Tensor) -> Tensor:
        """Return the mean of the texts' word vectors, [B, d]."""
        return _bag(types.ids, table, types.counts) / types.counts.sum(1, keepdim=True).clamp(min=1)

    def masses(self, types: Types, normed: Tensor, mean: Tensor) -> Tensor:
        """Return the weights of the relay and of every type, [B, h, 1 + U]; they sum to 1."""
        relay, alpha = self.relay, self.relay.alpha[:, None]
        centre = functional.layer_norm(mean, mean.shape[-1:])
        query = relay._split(relay.query(centre)) / relay.head_dim**0.5
        probe = torch.einsum("bhe,hed->bhd", query, relay._matrices(relay.key))
        keys = functional.embedding(types.ids, normed)
        scores = probe @ keys.mT + torch.einsum("bfu,fh->bhu", self.features(types), self.inputs)
        own = (probe * centre[:, None]).sum(-1, keepdim=True)
        counts = torch.cat([torch.ones_like(types.counts[:, :1]), types.counts], 1)[:, None]
        scores = torch.cat([own, scores], 2) * counts.sum(2, keepdim=True) ** (1 - alpha)
        masses: Tensor = CountedEntmax.apply(scores, alpha.expand(*scores.shape[:2], 1), counts)
        return masses

    def features(self, types: Types) -> Tensor:
        """Return each type's idf, log count, and how early it first occurs, centred: [B, 3, U]."""
        idf: Tensor = self.get_buffer("idf")[types.ids]
        found = torch.stack([idf, types.counts.clamp(min=1).log(), (types.first * 10 + 1).log()], 1)
        inside = (types.counts > 0)[:, None]
        mean = (found * inside).sum(2, keepdim=True) / inside.sum(2, keepdim=True).clamp(min=1)
        return (found - mean) * inside


def _bag(ids: Tensor, table: Tensor, weights: Tensor) -> Tensor:
    return functional.embedding_bag(ids, table, per_sample_weights=weights, mode="sum")
