"""The Adaptive Star Transformer on one page: attention in time and memory linear in the length of a text.

The Star Transformer (Guo et al., 2019) with an α-entmax that each head adapts (Correia et al., 2019), as the Siamese
encoder of Danovitch, "Linking social media posts to news with Siamese Transformers". Every token attends to a window
of 2c + 1 tokens (the ring) and to one relay, which attends to all of them. Shapes: B texts, L tokens, d dimensions,
h heads of e dimensions each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from linker.encoders.configs import StarConfig
from linker.encoders.entmax import entmax


class StarTransformer(nn.Module):
    """Token ids to one vector a text, not normalised."""

    def __init__(self, config: StarConfig, tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, config.dim, padding_idx=0)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.layers))
        self.max_weight = None if config.max_weight is None else nn.Parameter(torch.tensor(config.max_weight))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map ids [B, L] and their mask [B, L] (True: a token) to vectors [B, d]; without tokens: finite."""
        words = self.embedding(ids)  # [B, L, d]
        relay = masked_mean(words, mask)  # [B, d]
        ring = words
        for number, layer in enumerate(self.layers):
            ring, relay = layer(ring, relay, words if number else None, mask)
        top = masked_max(ring, mask)
        return (relay + (top if self.max_weight is None else self.max_weight * top)) / 2

    def alphas(self) -> dict[str, list[float]]:
        """Return every head's present α, by layer and kind of attention."""
        return {name: m.alpha.detach().flatten().tolist() for name, m in self.attentions().items()}

    def attentions(self) -> dict[str, _Attention]:
        """Return the ring's and the relay's attention of every layer by name, in the order of their use."""
        return {name: m for name, m in self.named_modules() if isinstance(m, _Attention)}


class _Layer(nn.Module):
    """One update of the ring, then of the relay."""

    def __init__(self, config: StarConfig) -> None:
        super().__init__()
        self.config = config
        self.ring, self.relay = _Ring(config), _Relay(config)
        norms = (nn.LayerNorm(config.dim) if config.layer_norm else nn.Identity() for _ in range(2))
        self.ring_norm, self.relay_norm = norms

    def forward(
        self, ring: Tensor, relay: Tensor, words: Tensor | None, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        words = words if self.config.token_key else None
        ring = self.ring_norm(self._join(ring, self.ring(ring, relay, words, mask)))
        seen = self.relay(ring, relay, mask)
        relay = self.relay_norm(self._join(relay, seen) if self.config.contrast is None else seen)
        return ring, relay

    def _join(self, old: Tensor, new: Tensor) -> Tensor:
        new = functional.leaky_relu(new) if self.config.leaky_relu else new
        return old + new if self.config.residual else new


class _Attention(nn.Module):
    """Projections and one α a head. Keys need no bias: entmax does not see what all scores share.

    `hook`, when set, is given the weights and which places count (a broadcastable mask) and returns the weights to use:
    the ring's are [places, B, L, h], the places being −c … c, the relay and, if it is one, the own word vector; the
    relay's are [B, 1 + L, h], itself first. `linker.encoders.explain` looks through it.
    """

    def __init__(self, config: StarConfig, head_dim: int | None = None) -> None:
        super().__init__()
        self.hook: Callable[[Tensor, Tensor], Tensor] | None = None
        self.heads, self.head_dim, self.window = config.heads, head_dim or config.head_dim, config.window
        self.pre_norm = config.pre_norm
        inner = self.heads * self.head_dim
        self.query = nn.Linear(config.dim, inner)
        self.key = nn.Linear(config.dim, inner, bias=False)
        self.value = nn.Linear(config.dim, inner)
        self.out = nn.Linear(inner, config.dim)
        if config.residual:
            nn.init.zeros_(self.out.weight)
            nn.init.zeros_(self.out.bias)
        start = math.log((config.alpha - 1) / (2 - config.alpha))  # the sigmoid's inverse
        self.raw_alpha = nn.Parameter(torch.full((config.heads,), start))

    @property
    def alpha(self) -> Tensor:
        """α of each head, [h], inside (1, 2)."""
        return 1 + torch.sigmoid(self.raw_alpha)

    def _weights(self, scores: Tensor, dim: int, inside: Tensor) -> Tensor:
        """Turn scores [..., h, L] into weights [..., L, h]; with h last, loops would be as short as there are heads."""
        weights = entmax(scores, self.alpha[:, None], dim, inside).mT
        return weights if self.hook is None else self.hook(weights, inside.mT)

    def _seen(self, x: Tensor) -> Tensor:
        """Return what queries and keys are made from."""
        return functional.layer_norm(x, x.shape[-1:]) if self.pre_norm else x

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, self.head_dim)  # [..., h·e] → [..., h, e]

    def _matrices(self, projection: nn.Linear) -> Tensor:
        return projection.weight.view(self.heads, self.head_dim, -1)  # [h·e, d] → [h, e, d]


class _Ring(_Attention):
    """Every token attends to its window, to the relay and, when given, to its own word vector."""

    def forward(self, ring: Tensor, relay: Tensor, words: Tensor | None, mask: Tensor) -> Tensor:
        seen = self._seen(ring)
        query = self._split(self.query(seen)) / math.sqrt(self.head_dim)  # [B, L, h, e]
        own = [relay[:, None], *([] if words is None else [words])]  # [B, 1, d], [B, L, d]
        keys = [
            *_shifts(self._split(self.key(seen)), self.window),
            *(self._split(self.key(self._seen(x))) for x in own),
        ]
        values = [
            *_shifts(self._split(self.value(ring)), self.window),
            *(self._split(self.value(x)) for x in own),
        ]
        scores = torch.stack([(query * key).sum(-1).mT for key in keys])  # [2c+2 or 2c+3, B, h, L]
        inside = torch.stack([*_shifts(mask, self.window), *(torch.ones_like(mask) for _ in own)])[:, :, None]
        weights = self._weights(scores, 0, inside)  # [2c+2 or 2c+3, B, L, h]
        mixed = torch.zeros_like(query)
        for weight, value in zip(weights, values, strict=True):
            mixed = torch.addcmul(mixed, weight[..., None], value)
        out: Tensor = self.out(mixed.flatten(-2))  # [B, L, d]
        return out


class _Relay(_Attention):
    """The relay attends to itself and all tokens; the projections move to its side of the products, which is exact.

    With a `contrast` κ it starts at entmax(−κ · cosine with the mean), each head over the share of the dimensions that
    is its own, values passed on as they are: a token counts the less, the more of it the mean says already. κ = 0 is
    the mean itself.
    """

    def __init__(self, config: StarConfig) -> None:
        whole = -(-config.dim // config.heads)  # so that the heads together have every dimension
        super().__init__(config, None if config.contrast is None else whole)
        self.contrast = config.contrast
        if config.contrast is not None:
            self._start(config.contrast)

    def _start(self, contrast: float) -> None:
        basis = nn.init.orthogonal_(torch.empty_like(self.key.weight))  # [h·e, d], h·e ≥ d: basisᵀ basis = 1
        with torch.no_grad():
            self.key.weight.copy_(basis)
            self.query.weight.copy_(basis * (-contrast / math.sqrt(self.head_dim)))
            self.value.weight.copy_(basis)
            self.out.weight.copy_(basis.T)
            for projection in (self.query, self.value, self.out):
                projection.bias.zero_()

    def forward(self, ring: Tensor, relay: Tensor, mask: Tensor) -> Tensor:
        seen = torch.cat([relay[:, None], ring], dim=1)  # [B, 1+L, d]
        inside = functional.pad(mask, (1, 0), value=True)[:, None]
        query = self._split(self.query(self._seen(relay))) / math.sqrt(self.head_dim)  # [B, h, e]
        probe = torch.einsum("bhe,hed->bhd", query, self._matrices(self.key))
        scores = torch.einsum("bld,bhd->bhl", self._seen(seen), probe)
        if self.contrast is not None:
            scores = length_free(scores, inside, self.alpha)
        weights = self._weights(scores, 2, inside)  # [B, 1+L, h]
        mixed = torch.einsum("blh,bld->bhd", weights, seen)
        values = torch.einsum("bhd,hed->bhe", mixed, self._matrices(self.value))
        out: Tensor = self.out(values.flatten(-2) + self.value.bias)  # [B, d]
        return out


def length_free(scores: Tensor, inside: Tensor, alpha: Tensor) -> Tensor:
    """Scale scores [B, h, L] by n^(1 − α), n being the places `inside` [B, 1, L] and α [h] each head's.

    Every key k times over then has 1/k of its weight. Left as they are, entmax keeps fewer the longer a text is, and a
    model trained on windows meets other weights in whole documents.
    """
    return scores * inside.sum(2, keepdim=True) ** (1 - alpha)[:, None]


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the places of `mask` [B, L] of x [B, L, d]: [B, d], zeros where there is none."""
    kept = mask[..., None].to(x.dtype)
    return (x * kept).sum(1) / kept.sum(1).clamp(min=1)


def masked_max(x: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over the places of `mask` [B, L] of x [B, L, d]: [B, d], zeros where there is none."""
    if x.shape[1] == 0:
        return x.sum(1)
    top = x.masked_fill(~mask[..., None], -torch.inf).amax(1)
    return torch.where(mask.any(1, keepdim=True), top, 0.0)


def _shifts(x: Tensor, window: int) -> list[Tensor]:
    """Return 2c + 1 views of x [B, L, …], each [B, L, …], moved by −c … c places; zero (False) outside."""
    padded = functional.pad(x, (0, 0) * (x.dim() - 2) + (window, window))
    return [padded[:, o : o + x.shape[1]] for o in range(2 * window + 1)]
