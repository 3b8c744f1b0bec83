"""Explanations of a cosine between two texts: each token left out in turn and, for a star, its attention weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Float64Array
from linker.encoders.interface import Encoder
from linker.evaluation.correlation import spearman

if TYPE_CHECKING:
    from linker.encoders.star import StarTransformer
    from linker.encoders.text import TextEncoder

FEWEST = 3  # minimum number of tokens for a rank correlation
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, eq=False, slots=True)
class Attention:
    """One attention layer on one text, with the weights of the forward pass, for q queries, p places and h heads.

    A relay has one query (q = 1), and its places are the relay and every token. A ring has one query per token, and its
    places are the neighbours by distance, the relay and, from the second layer on, the token's own word vector.
    """

    name: str  # for example layers.0.relay
    places: tuple[str, ...]  # [p]
    weights: npt.NDArray[np.float32]  # [q, p, h]; a 0 is exact, never rounded
    inside: npt.NDArray[np.bool_]  # [q, p]; False where a place is outside the text
    alphas: tuple[float, ...]  # [h]
    start: float  # every head's α before training

    @property
    def zeros(self) -> npt.NDArray[np.int64]:
        """Number of each head's weights that are exactly zero, int64 [h], out of `possible`."""
        zeros: npt.NDArray[np.int64] = ((self.weights == 0) & self.inside[..., None]).sum((0, 1))
        return zeros

    @property
    def possible(self) -> int:
        """Number of weights per head on this text."""
        return int(self.inside.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold; a weight is None where its place is outside the text."""
        shown = self.weights.astype(object)  # not rounded, so that only exact zeros are shown as 0
        shown[~self.inside] = None
        heads = [
            {
                "alpha": round(alpha, 6),
                "moved": round(alpha - self.start, 6),
                "zeros": int(zeros),
                "share_of_zeros": round(int(zeros) / max(self.possible, 1), 6),
                "weights": shown[..., head].tolist(),
            }
            for head, (alpha, zeros) in enumerate(zip(self.alphas, self.zeros, strict=True))
        ]
        return {"name": self.name, "start": self.start, "weights_a_head": self.possible,
                "places": list(self.places), "heads": heads}  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class TextExplanation:
    """The explanation of one of the two texts, with n tokens.

    `changes`, float64 [n]: the change of the cosine without the token; below 0 for a token that supports the link.
    `shares`, float64 [n], for a star: the token's share of the embedding's length, i.e. its word vector times the
    gradient with all attention weights fixed. They sum to 1 less the share of biases (and of a layer norm); they can
    be negative.
    """

    tokens: tuple[str, ...]
    changes: Float64Array
    shares: Float64Array | None = None
    attentions: tuple[Attention, ...] = ()

    @property
    def attention(self) -> Float64Array | None:
        """Each token's weight in the relay's attentions, averaged over heads and layers, float64 [n]."""
        relays = [a.weights[0, 1:].mean(1) for a in self.attentions if a.name.endswith("relay")]
        return np.mean(relays, axis=0, dtype=np.float64) if relays else None

    @property
    def unevenness(self) -> float:
        """Largest difference between a relay's weight and a uniform one; near 0, the relay takes the plain mean."""
        relays = [a.weights for a in self.attentions if a.name.endswith("relay")]
        return max((float(np.abs(w - 1 / w.shape[1]).max()) for w in relays), default=0.0)

    def correlation(self, figures: Float64Array | None) -> float | None:
        """Return Spearman's correlation of a figure per token, [n], with |`changes`|; None for n < 3 or constants."""
        if figures is None or len(self.tokens) < FEWEST:
            return None
        sizes = np.abs(self.changes)
        if np.ptp(figures) == 0 or np.ptp(sizes) == 0:
            return None
        return spearman(figures, sizes)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold, with floats rounded to six decimals, except for attention weights."""
        attention, shares = self.attention, self.shares
        exact = [self.correlation(attention), self.correlation(None if shares is None else np.abs(shares))]
        correlations = [None if c is None else round(c, 6) for c in exact]
        return {
            "tokens": list(self.tokens),
            "change_of_cosine": _round(self.changes),
            "share_of_embedding": _round(shares),
            "relay_attention": _round(attention),
            "unevenness": round(self.unevenness, 6),
            "rank_correlation": {"attention": correlations[0], "share": correlations[1]},
            "attentions": [a.to_dict() for a in self.attentions],
        }


@dataclass(frozen=True, eq=False, slots=True)
class PairExplanation:
    """The result of `explain`: the encoder's kind, the cosine of the two texts, and an explanation of each."""

    kind: str
    cosine: float
    texts: tuple[TextExplanation, TextExplanation]

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold."""
        first, second = (text.to_dict() for text in self.texts)
        return {"kind": self.kind, "cosine": round(self.cosine, 6), "a": first, "b": second}


def explain(encoder: Encoder, first: str, second: str) -> PairExplanation:
    """Explain the cosine of two texts by leaving out each token and, for a star, by its attention weights.

    For a model from `linker train`, tokens come from the encoder's tokenizer, up to its maximum length; otherwise
    they are words between blanks. The encoder is not changed. The cost is one encoding per token.
    """
    saved = _text_encoder_of(encoder)
    texts = (first, second)
    parts = [_without_ids(saved, text) if saved else _without_words(encoder, text) for text in texts]
    originals = [vectors[0] for _, vectors in parts]
    cosine = float(originals[0] @ originals[1])
    explanations = []
    for (tokens, vectors), other, text in zip(parts, originals[::-1], texts, strict=True):
        shares, attentions = _inside(saved, text) if saved else (None, ())
        explanations.append(TextExplanation(tokens, vectors[1:] @ other - cosine, shares, attentions))
    kind = saved.kind if saved else type(encoder).__name__
    return PairExplanation(kind, cosine, (explanations[0], explanations[1]))


def _text_encoder_of(encoder: Encoder) -> TextEncoder | None:
    try:
        from linker.encoders.text import TextEncoder
    except ImportError:  # some pretrained encoders do not need PyTorch
        return None
    return encoder if isinstance(encoder, TextEncoder) else None


def _without_ids(encoder: TextEncoder, text: str) -> tuple[tuple[str, ...], Float64Array]:
    """Return the tokens [n], and the vectors [1 + n, d] of the whole text and of the text without each token."""
    ids = encoder.tokenizer.encode_batch([text], encoder.max_length)[0]
    tokens = encoder.tokenizer.tokens(text, encoder.max_length)
    vectors = encoder.encode_ids([ids, *(ids[:i] + ids[i + 1 :] for i in range(len(ids)))])
    return tuple(tokens), vectors.astype(np.float64)


def _without_words(encoder: Encoder, text: str) -> tuple[tuple[str, ...], Float64Array]:
    words = list(_WORD.finditer(text))
    vectors = encoder.encode([text, *(text[: w.start()] + text[w.end() :] for w in words)])
    return tuple(w.group() for w in words), vectors.astype(np.float64)


def _inside(encoder: TextEncoder, text: str) -> tuple[Float64Array | None, tuple[Attention, ...]]:
    """Return a star's shares [n] and attentions on a text, or None and () for another model."""
    from linker.encoders.configs import StarConfig
    from linker.encoders.star import StarTransformer

    module, config = encoder.module, encoder.config
    if not (isinstance(module, StarTransformer) and isinstance(config, StarConfig)):
        return None, ()
    ids = encoder.tokenizer.encode_batch([text], encoder.max_length)[0]
    if not ids:
        return np.zeros(0), ()
    was_training = module.training
    module.eval()
    try:
        shares, seen = _forward(module, ids)
    finally:
        module.train(was_training)
    around = ("relay", *encoder.tokenizer.tokens(text, encoder.max_length))
    near = (*(f"{d:+d}" if d else "0" for d in range(-config.window, config.window + 1)), "relay", "word")
    alphas = module.alphas()
    attentions = (
        Attention(
            name,
            around if name.endswith("relay") else near[: weights.shape[1]],
            weights,
            inside,
            tuple(alphas[name]),
            config.alpha,
        )
        for name, (weights, inside) in seen.items()
    )
    return shares, tuple(attentions)


Seen = dict[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]]


def _forward(module: StarTransformer, ids: Sequence[int]) -> tuple[Float64Array, Seen]:
    """Run the model on one text; return the tokens' shares [n] and every attention's weights [q, p, h] and mask."""
    import torch
    from torch import Tensor

    from linker.encoders.attention import hooked
    from linker.encoders.text import padded

    seen: Seen = {}
    words: list[Tensor] = []

    def hold(name: str, weights: Tensor, inside: Tensor) -> Tensor:
        fixed = weights.detach()
        both = [x.expand_as(fixed) for x in (fixed, inside)]
        both = [x if name.endswith("relay") else x[:, 0].transpose(0, 1) for x in both]
        seen[name] = both[0].float().cpu().numpy(), both[1][..., 0].cpu().numpy()
        # fixed weights make the embedding linear in the word vectors: only then do shares add up
        return fixed

    def catch(_module: torch.nn.Module, _inputs: object, output: Tensor) -> Tensor:
        words.append(output.detach().requires_grad_())
        return words[0]

    device = next(module.parameters()).device
    hook = module.embedding.register_forward_hook(catch)
    try:
        with torch.enable_grad(), hooked(module, hold):
            length = module(*(x.to(device) for x in padded([ids])))[0].norm()
            (gradient,) = torch.autograd.grad(length, words[0])
    finally:
        hook.remove()
    parts = (gradient * words[0]).detach().sum(-1)[0] / length.detach().clamp(min=1e-12)
    return parts.double().cpu().numpy(), seen


def _round(values: Float64Array | None) -> list[float] | None:
    return None if values is None else [round(float(v), 6) for v in values]
