"""Idf, count and first position in the keys: against a loop; models without them are unchanged."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from linker.encoders.configs import PRESETS
from linker.encoders.key_inputs import KeyInputs, occurrences
from linker.encoders.star import StarTransformer
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Vocabulary, WordTokenizer

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


def test_a_token_of_higher_score_gets_a_higher_weight() -> None:
    torch.manual_seed(0)
    model = StarTransformer(CONFIG, tokens=10)
    assert model.key_inputs is not None
    model.key_inputs.set_idf(np.array([9, 9, 9, 9, 9, 9, 9, 9, 9, 0]), documents=10)  # 9 is rare
    with torch.no_grad():
        model.key_inputs.weight[0] = 2.0
    seen: list[torch.Tensor] = []

    def hook(weights: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
        seen.append(weights)
        return weights

    model.attentions()["layers.0.relay"].hook = hook
    model(*batch())
    row = seen[0][0, 1:6].mean(1)
    assert row.argmax() == 4


def test_a_model_without_them_is_described_as_before() -> None:
    tokenizer = WordTokenizer(Vocabulary.build(["a b c"], min_count=1, max_size=10))
    plain = TextEncoder.new(dataclasses.replace(CONFIG, key_inputs=False), tokenizer)
    assert "key_inputs" not in json.dumps(plain.describe())
    assert TextEncoder.new(CONFIG, tokenizer).describe()["model"]["key_inputs"] is True
