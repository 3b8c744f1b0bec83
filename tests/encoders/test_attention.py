"""Recorded weights are the weights that the model used, and zero counts match those of a loop."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from linker.encoders.attention import hooked, sparsity
from linker.encoders.configs import PRESETS, BagConfig, StarConfig
from linker.encoders.key_inputs import KeyInputs, occurrences
from linker.encoders.star import StarTransformer
from linker.encoders.text import TextEncoder, padded
from linker.encoders.tokens import Vocabulary, WordTokenizer

SMALL = StarConfig(dim=8, heads=3, head_dim=4, layers=2, alpha=1.7, window=1)
IDS = [[2, 3, 4, 5, 6], [7], [8, 2, 9, 3]]
CONFIGS = {
    "small": SMALL,
    "everything": dataclasses.replace(
        SMALL, residual=True, layer_norm=True, leaky_relu=True, max_weight=0.3, window=2
    ),
    "no token key": dataclasses.replace(SMALL, token_key=False),
    "contrast": dataclasses.replace(SMALL, residual=True, pre_norm=True, contrast=1.0),
}


def encoder(config: StarConfig | BagConfig) -> TextEncoder:
    """Return an encoder with every parameter random, including zero-initialised ones."""
    torch.manual_seed(0)
    model = TextEncoder.new(config, WordTokenizer(Vocabulary.of(f"w{i}" for i in range(10))))
    with torch.no_grad():
        for parameter in model.module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    return model


def star(config: StarConfig) -> StarTransformer:
    module = encoder(config).module
    assert isinstance(module, StarTransformer)
    return module


def record(module: StarTransformer, ids: list[list[int]]) -> dict[str, tuple[Tensor, Tensor]]:
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def keep(name: str, weights: Tensor, inside: Tensor) -> Tensor:
        seen[name] = weights, inside
        return weights

    with torch.no_grad(), hooked(module, keep):
        module(*padded(ids))
    return seen


@pytest.mark.parametrize("name", CONFIGS)
def test_recorded_weights_reproduce_the_embedding(name: str) -> None:
    """With queries, keys and α scrambled, the recorded weights alone restore the embedding."""
    module = star(CONFIGS[name])
    with torch.no_grad():
        expected = module(*padded(IDS))
        seen = record(module, IDS)
        for parameter_name, parameter in module.named_parameters():
            if any(part in parameter_name for part in ("query", "key", "raw_alpha")):
                parameter.add_(torch.randn_like(parameter))
        scrambled = module(*padded(IDS))
        with hooked(module, lambda name, weights, inside: seen[name][0]):
            replayed = module(*padded(IDS))
        again = module(*padded(IDS))
    assert (scrambled - expected).abs().max() > 1e-3
    assert torch.equal(replayed, expected)
    assert torch.equal(again, scrambled)  # the hook was removed
    assert list(seen) == list(module.alphas())


def test_sparsity_counts_what_a_loop_counts() -> None:
    model = encoder(SMALL)
    assert isinstance(model.module, StarTransformer)
    zeros = {name: [0, 0, 0] for name in model.module.attentions()}
    places = dict.fromkeys(zeros, 0)
    for text in IDS:
        for name, (weights, _) in record(model.module, [text]).items():
            if name.endswith("relay"):
                places[name] += 1 + len(text)
                rows = [weights[0, j] for j in range(1 + len(text))]
            else:
                near = [(o, i) for i in range(len(text)) for o in range(3) if 0 <= i + o - 1 < len(text)]
                near += [(o, i) for i in range(len(text)) for o in range(3, len(weights))]
                places[name] += len(near)
                rows = [weights[o, 0, i] for o, i in near]
            for row in rows:
                zeros[name] = [z + int(w == 0) for z, w in zip(zeros[name], row, strict=True)]
    model.module.train()
    found = sparsity(model, [*IDS, []])
    assert model.module.training
    assert any(0 < share < 1 for shares in found.values() for share in shares)
    for name, shares in found.items():
        assert shares == pytest.approx([z / places[name] for z in zeros[name]], abs=1e-6)


def test_an_error_in_the_model_leaves_no_tap_behind() -> None:
    module = star(SMALL)
    with pytest.raises(IndexError), hooked(module, lambda name, weights, inside: weights), torch.no_grad():
        module(torch.tensor([[99]]), torch.ones(1, 1, dtype=torch.bool))
    assert all(attention.hook is None for attention in module.attentions().values())


CONFIG = dataclasses.replace(PRESETS["recommended"], dim=12, heads=3, key_inputs=True)
TEXTS = [[4, 7, 4, 4, 9], [3], [], [5, 6, 7, 8, 5, 6]]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    width = 8
    ids = torch.tensor([text + [4] * (width - len(text)) for text in TEXTS])  # not PAD: it must not matter
    return ids, torch.arange(width)[None] < torch.tensor([len(text) for text in TEXTS])[:, None]


def test_occurrences_are_those_of_a_loop() -> None:
    counts, first = occurrences(*batch())
    for row, text in enumerate(TEXTS):
        assert counts[row].tolist() == [*(text.count(t) for t in text), *[1] * (8 - len(text))]
        assert first[row].tolist() == [*(text.index(t) for t in text), *[0] * (8 - len(text))]


def test_features_are_centred_over_distinct_tokens() -> None:
    inputs = KeyInputs(heads=3, tokens=10)
    inputs.set_idf(np.array([9, 0, 1, 2, 3, 4, 5, 6, 7, 8]), documents=10)
    features = inputs.features(*batch())
    for row, text in enumerate(TEXTS):
        plain = {
            t: [float(inputs.idf[t]), math.log(text.count(t)), math.log(1 + 10 * text.index(t) / len(text))]
            for t in text
        }
        for feature in range(3):
            mean = sum(x[feature] for x in plain.values()) / max(1, len(plain))
            expected = [*(plain[t][feature] - mean for t in text), *[0.0] * (8 - len(text))]
            assert features[row, feature].tolist() == pytest.approx(expected, abs=1e-6)


def test_weights_of_zero_change_nothing_and_others_move_the_vector() -> None:
    torch.manual_seed(0)
    model = StarTransformer(CONFIG, tokens=10)
    plain = StarTransformer(dataclasses.replace(CONFIG, key_inputs=False), tokens=10)
    plain.load_state_dict(model.state_dict(), strict=False)
    assert torch.equal(model(*batch()), plain(*batch()))
    assert model.key_inputs is not None
    with torch.no_grad():
        model.key_inputs.weight[1] = -0.5  # repeated tokens count less
    moved = (model(*batch()) - plain(*batch())).abs().amax(1)
    assert (moved > 1e-4).tolist() == [True, False, False, True]
