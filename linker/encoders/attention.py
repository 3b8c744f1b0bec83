"""Inspection of a Star Transformer's attention: the weights of the actual forward pass, and their exact zeros."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from linker.encoders.star import StarTransformer
from linker.encoders.text import TextEncoder, padded

Hook = Callable[[str, Tensor, Tensor], Tensor]


@contextmanager
def hooked(module: StarTransformer, hook: Hook) -> Iterator[None]:
    """Call `hook(name, weights, inside)` in every attention module; it may replace the weights (see `_Attention`)."""
    attentions = module.attentions()
    try:
        for name, attention in attentions.items():
            attention.hook = partial(hook, name)
        yield
    finally:
        for attention in attentions.values():
            attention.hook = None


def sparsity(encoder: TextEncoder, ids: Sequence[Sequence[int]]) -> dict[str, list[float]]:
    """Return each head's share of weights that are exactly zero, by attention module; {} for models without attention.

    `ids` are the token ids of texts; positions outside a text do not count. Texts are encoded one by one, so pass a
    sample: 64 texts give the share to within a few percentage points.
    """
    module = encoder.module
    if not isinstance(module, StarTransformer):
        return {}
    zeros: dict[str, Tensor] = {}
    places: dict[str, int] = {}

    def count(name: str, weights: Tensor, inside: Tensor) -> Tensor:
        new_zeros, possible = zeros_and_places(weights, inside)
        zeros[name] = zeros.get(name, 0) + new_zeros
        places[name] = places.get(name, 0) + possible
        return weights

    device = next(module.parameters()).device
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode(), hooked(module, count):
            for text in filter(len, ids):
                module(*(x.to(device) for x in padded([text])))  # one at a time, without padding
    finally:
        module.train(was_training)
    return {name: [round(n / places[name], 6) for n in counts.tolist()] for name, counts in zeros.items()}


def zeros_and_places(weights: Tensor, inside: Tensor) -> tuple[Tensor, int]:
    """Return how many of each head's weights are exactly zero, int64 [h], and the number of weights of one head.

    `weights` [..., h]; `inside`, bool, broadcastable to `weights`, is False at positions that do not count.
    """
    within = inside.expand_as(weights)
    zeros = ((weights == 0) & within).flatten(0, -2).sum(0)
    return zeros, int(within[..., 0].sum())
