"""The compact star is the star itself: its vectors, and entmax with its gradients."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from linker.encoders.configs import PRESETS
from linker.encoders.entmax import entmax
from linker.encoders.star import StarTransformer
from linker.encoders.text import padded
from linker.training.compact_star import CompactStar, CountedEntmax, Types


def test_vectors_are_those_of_the_star() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 60)).astype(np.float32)
    vectors[0] = 0
    config = dataclasses.replace(PRESETS["recommended"], dim=60, contrast=3.0)
    model = CompactStar(vectors, config, np.ones(50), seed=0)
    texts = [rng.integers(1, 50, n) for n in (1, 5, 40, 300)]
    star = torch.nn.functional.normalize(model.star(*padded([t.tolist() for t in texts])), dim=-1)
    assert (model(Types.of(texts)) - star).abs().max() < 5e-6


def test_counted_entmax_is_entmax_of_repeated_scores() -> None:
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 6, dtype=torch.float64, generator=g).requires_grad_()
    counts = torch.tensor([1, 3, 2, 1, 4, 2])
    alpha = torch.tensor([[1.2], [1.5], [1.9]], dtype=torch.float64, requires_grad=True)
    toward = torch.randn(3, 6, dtype=torch.float64, generator=g)

    def gradients(masses: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad((masses * toward).sum(), (scores, alpha))

    compact = CountedEntmax.apply(scores, alpha, counts.double())
    repeated = entmax(scores.repeat_interleave(counts, dim=1), alpha)
    where = torch.arange(6).repeat_interleave(counts)
    summed = torch.zeros(3, 6, dtype=torch.float64).index_add(1, where, repeated)
    assert (compact - summed).abs().max() < 1e-9
    for ours, theirs in zip(gradients(compact), gradients(summed), strict=True):
        assert (ours - theirs).abs().max() < 1e-8


def test_inputs_of_keys_are_those_of_the_star() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(50, 60)).astype(np.float32)
    vectors[0] = 0
    config = dataclasses.replace(PRESETS["recommended"], dim=60)
    model = CompactStar(vectors, config, rng.random(50), seed=0)
    star = StarTransformer(dataclasses.replace(config, key_inputs=True), 50)
    star.load_state_dict(model.star.state_dict(), strict=False)
    assert star.key_inputs is not None
    with torch.no_grad():
        model.inputs.copy_(torch.from_numpy(rng.normal(size=(3, 4))))
        star.key_inputs.weight.copy_(model.inputs)
        star.key_inputs.idf.copy_(model.get_buffer("idf"))
    texts = [rng.integers(1, 50, n) for n in (1, 5, 40, 300)]
    found = torch.nn.functional.normalize(star(*padded([t.tolist() for t in texts])), dim=-1)
    assert (model(Types.of(texts)) - found).abs().max() < 5e-6
