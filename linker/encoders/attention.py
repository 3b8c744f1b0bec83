"""What a star's attentions did: the weights its own forward pass used, and how many of them are exactly zero."""

from __future__ import annotations

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
    """Let `hook(name, weights, inside)` see and replace the weights of every attention; shapes: `_Attention`."""
    attentions = module.attentions()
    try:
        for name, attention in attentions.items():
            attention.hook = partial(hook, name)
        yield
    finally:
        for attention in attentions.values():
            attention.hook = None


def sparsity(encoder: TextEncoder, ids: Sequence[Sequence[int]]) -> dict[str, list[float]]:
    """Return each head's share of weights that are exactly zero, by attention; {} for other models than a star.

    Counted over all weights of the texts `ids`, places outside a text left out. Texts go through one by one, so give a
    sample: 64 texts tell a share within a few points.
    """
    module = encoder.module
    if not isinstance(module, StarTransformer):
        return {}
    zeros: dict[str, Tensor] = {}
    places: dict[str, int] = {}

    def count(name: str, weights: Tensor, inside: Tensor) -> Tensor:
        found, possible = zeros_and_places(weights, inside)
        zeros[name] = zeros.get(name, 0) + found
        places[name] = places.get(name, 0) + possible
        return weights

    device = next(module.parameters()).device
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode(), hooked(module, count):
            for text in filter(len, ids):
                module(*(x.to(device) for x in padded([text])))  # alone: no padding to leave out
    finally:
        module.train(was_training)
    return {name: [round(n / places[name], 6) for n in found.tolist()] for name, found in zeros.items()}


def zeros_and_places(weights: Tensor, inside: Tensor) -> tuple[Tensor, int]:
    """Return how many weights of each head (the last dimension) are exactly zero, int64 [h], and of how many."""
    within = inside.expand_as(weights)
    zeros = ((weights == 0) & within).flatten(0, -2).sum(0)
    return zeros, int(within[..., 0].sum())
