"""The Adaptive Star Transformer: attention in time and memory linear in the length of a text.

The Star Transformer (Guo et al., 2019) with an α-entmax that each head adapts (Correia et al., 2019), which is the
encoder in Danovitch, "Linking social media posts to news with Siamese Transformers". Every token attends to a window
of 2c + 1 tokens (the ring) and to one relay, which attends to all tokens. Shapes: B texts, L tokens, d dimensions,
h heads of e dimensions each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from linker.encoders.configs import StarConfig
from linker.encoders.entmax import MIN_EPSILON, backend
from linker.encoders.key_inputs import KeyInputs


class StarTransformer(nn.Module):
    """Maps token ids to one vector per text, not normalised."""

    def __init__(self, config: StarConfig, tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, config.dim, padding_idx=0)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.layers))
        self.first_token_key = config.first_token_key
        self.key_inputs = KeyInputs(config.heads, tokens) if config.key_inputs else None
        self.max_weight = None if config.max_weight is None else nn.Parameter(torch.tensor(config.max_weight))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map ids, int64 [B, L], and their mask, bool [B, L] (True: a token), to finite vectors [B, d]."""
        words = self.embedding(ids)  # [B, L, d]
        relay = masked_mean(words, mask)  # [B, d]
        ring = words
        added = None if self.key_inputs is None else self.key_inputs(ids, mask)  # [B, h, L]
        for number, layer in enumerate(self.layers):
            own = words if number or self.first_token_key else None
            ring, relay = layer(ring, relay, own, mask, added)
        top = masked_max(ring, mask)
        return (relay + (top if self.max_weight is None else self.max_weight * top)) / 2

    def alphas(self) -> dict[str, list[float]]:
        """Return the current α of every head, by name of the attention."""
        return {name: m.alpha.detach().flatten().tolist() for name, m in self.attentions().items()}

    def attentions(self) -> dict[str, _Attention]:
        """Return every layer's attention modules (ring and relay) by name, in the order in which they run."""
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
        self, ring: Tensor, relay: Tensor, words: Tensor | None, mask: Tensor, added: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        words = words if self.config.token_key else None
        if self._ring_is_needed():
            ring = self._join(ring, self.ring(ring, relay, words, mask))
        ring = self.ring_norm(ring)
        seen = self.relay(ring, relay, mask, added)
        relay = self.relay_norm(self._join(relay, seen) if self.config.contrast is None else seen)
        return ring, relay

    def _ring_is_needed(self) -> bool:
        """Return False if the ring would add zeros to its input, as it does until it has been trained.

        It can then be skipped, if no gradient is computed and no hook inspects its attention weights. This saves half
        of the encoding time.
        """
        if not self.config.residual or self.ring.hook is not None or torch.is_grad_enabled():
            return True
        return torch.compiler.is_compiling() or any(bool(p.any()) for p in self.ring.out.parameters())

    def _join(self, old: Tensor, new: Tensor) -> Tensor:
        new = functional.leaky_relu(new) if self.config.leaky_relu else new
        return old + new if self.config.residual else new


class _Attention(nn.Module):
    """Projections and one α per head. Keys need no bias: entmax ignores a constant added to all scores.

    `hook`, if set, takes the weights and a broadcastable mask of the positions that count, and returns the weights to
    use. The ring's are [places, B, L, h]; its places are −c … c, the relay and, if attended to, the token's own word
    vector. The relay's are [B, 1 + L, h], with itself first. `linker.scoring.pairs.explaining` uses it.
    """

    def __init__(self, config: StarConfig, head_dim: int | None = None) -> None:
        super().__init__()
        self.hook: Callable[[Tensor, Tensor], Tensor] | None = None
        self.heads, self.head_dim, self.window = config.heads, head_dim or config.head_dim, config.window
        self.pre_norm, self.cosine, self.entmax = (
            config.pre_norm,
            config.score == "cosine",
            backend(config.entmax),
        )
        inner = self.heads * self.head_dim
        self.query = nn.Linear(config.dim, inner)
        self.key = nn.Linear(config.dim, inner, bias=False)
        self.value = nn.Linear(config.dim, inner)
        self.out = nn.Linear(inner, config.dim)
        if config.residual:
            nn.init.zeros_(self.out.weight)
            nn.init.zeros_(self.out.bias)
        self.clamped = config.alpha_form == "clamped"
        start = math.log((config.alpha - 1) / (2 - config.alpha))  # the inverse of the sigmoid
        full = torch.full((config.heads,), start)
        self.raw_alpha = nn.Parameter(1 + torch.rand(config.heads) if self.clamped else full)

    @property
    def alpha(self) -> Tensor:
        """α of each head, [h], between 1 and 2."""
        if not self.clamped:
            return 1 + torch.sigmoid(self.raw_alpha)
        # As in the author's code: α can leave the bound again, while a clamp in the forward pass has no gradient.
        self.raw_alpha.data.clamp_(1 + MIN_EPSILON, 2)
        return self.raw_alpha

    def _weights(self, scores: Tensor, dim: int, inside: Tensor) -> Tensor:
        """Return weights [..., L, h] for scores [..., h, L]; with h last, entmax's inner loops would be short."""
        weights = self.entmax(scores, self.alpha[:, None], dim, inside).mT
        return weights if self.hook is None else self.hook(weights, inside.mT)

    def _seen(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:]) if self.pre_norm else x

    def _scaled(self, query: Tensor) -> Tensor:
        return functional.normalize(query, dim=-1) if self.cosine else query / math.sqrt(self.head_dim)

    def _keys(self, x: Tensor) -> Tensor:
        keys = self._split(self.key(self._seen(x)))
        return functional.normalize(keys, dim=-1) if self.cosine else keys

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, self.head_dim)  # [..., h·e] → [..., h, e]

    def _matrices(self, projection: nn.Linear) -> Tensor:
        return projection.weight.view(self.heads, self.head_dim, -1)  # [h·e, d] → [h, e, d]


class _Ring(_Attention):
    """Every token attends to its window, to the relay and, if `words` are given, to its own word vector."""

    def forward(self, ring: Tensor, relay: Tensor, words: Tensor | None, mask: Tensor) -> Tensor:
        query = self._scaled(self._split(self.query(self._seen(ring))))  # [B, L, h, e]
        others = [relay[:, None], *([] if words is None else [words])]  # [B, 1, d], [B, L, d]
        keys = [*_shifts(self._keys(ring), self.window), *map(self._keys, others)]
        values = [
            *_shifts(self._split(self.value(ring)), self.window),
            *(self._split(self.value(x)) for x in others),
        ]
        scores = torch.stack([(query * key).sum(-1).mT for key in keys])  # [2c+2 or 2c+3, B, h, L]
        inside = torch.stack([*_shifts(mask, self.window), *(torch.ones_like(mask) for _ in others)])
        inside = inside[:, :, None]
        weights = self._weights(scores, 0, inside)  # [2c+2 or 2c+3, B, L, h]
        mixed = torch.zeros_like(query)
        for weight, value in zip(weights, values, strict=True):
            mixed = torch.addcmul(mixed, weight[..., None], value)
        out: Tensor = self.out(mixed.flatten(-2))  # [B, L, d]
        return out


class _Relay(_Attention):
    """The relay attends to itself, unless `relay_key` is false, and to all tokens.

    Instead of every key and value, the query and the weighted mean of the inputs are projected, which is equivalent;
    only scores by cosine need the keys themselves.

    With a `contrast` κ, the weights start as entmax(−κ · cosine with the mean), each head over its own share of the
    dimensions, and the values are unchanged: the more similar a token is to the mean, the less it counts. κ = 0 gives
    the mean.
    """

    def __init__(self, config: StarConfig) -> None:
        share = -(-config.dim // config.heads)  # rounded up, so that the heads together cover every dimension
        super().__init__(config, None if config.contrast is None else share)
        self.contrast, self.own_key = config.contrast, config.relay_key
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

    def forward(self, ring: Tensor, relay: Tensor, mask: Tensor, added: Tensor | None = None) -> Tensor:
        """Return the relay's update [B, d]; `added` [B, h, L], from `KeyInputs`, is added to the tokens' scores."""
        seen = torch.cat([relay[:, None], ring], dim=1)  # [B, 1+L, d]
        inside = functional.pad(mask, (1, 0), value=self.own_key)[:, None]
        query = self._scaled(self._split(self.query(self._seen(relay))))  # [B, h, e]
        scores = self._scores(query, seen)
        if added is not None:
            scores = scores + functional.pad(added, (1, 0))
        if self.contrast is not None:
            scores = length_free(scores, inside, self.alpha)
        weights = self._weights(scores, 2, inside)  # [B, 1+L, h]
        mixed = torch.einsum("blh,bld->bhd", weights, seen)
        values = torch.einsum("bhd,hed->bhe", mixed, self._matrices(self.value))
        out: Tensor = self.out(values.flatten(-2) + self.value.bias)  # [B, d]
        return out

    def _scores(self, query: Tensor, seen: Tensor) -> Tensor:
        """Return the scores [B, h, 1+L] of queries [B, h, e] against the inputs `seen`, [B, 1+L, d]."""
        if self.cosine:
            return torch.einsum("bhe,blhe->bhl", query, self._keys(seen))
        probe = torch.einsum("bhe,hed->bhd", query, self._matrices(self.key))
        return torch.einsum("bld,bhd->bhl", self._seen(seen), probe)


def length_free(scores: Tensor, inside: Tensor, alpha: Tensor) -> Tensor:
    """Return scores [B, h, L] scaled by n^(1 − α): n counts the positions `inside` (bool [B, 1, L]); `alpha` is [h].

    If every key is repeated k times, each then has 1/k of its weight. Unscaled, entmax keeps fewer positions the
    longer a text is, and a model trained on windows would get different weights on whole documents.
    """
    return scores * inside.sum(2, keepdim=True).to(scores.dtype) ** (1 - alpha)[:, None]


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of x [B, L, d] where `mask`, bool [B, L], is True: [B, d], 0 if it is never True."""
    inside = mask[..., None].to(x.dtype)
    return (x * inside).sum(1) / inside.sum(1).clamp(min=1)


def masked_max(x: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum of x [B, L, d] where `mask`, bool [B, L], is True: [B, d], 0 if it is never True."""
    if x.shape[1] == 0:
        return x.sum(1)
    top = x.masked_fill(~mask[..., None], -torch.inf).amax(1)
    return torch.where(mask.any(1, keepdim=True), top, 0.0)


def _shifts(x: Tensor, window: int) -> list[Tensor]:
    """Return 2c + 1 views of x [B, L, …], each [B, L, …], shifted by −c … c positions; 0 (False) outside."""
    padded = functional.pad(x, (0, 0) * (x.dim() - 2) + (window, window))
    return [padded[:, o : o + x.shape[1]] for o in range(2 * window + 1)]
