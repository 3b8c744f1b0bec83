"""Encoders as folders: the same vectors after saving, whatever the batches; damage is found."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from linker.encoders import Encoder, load_encoder
from linker.encoders import folder as folders
from linker.encoders.bag import BagConfig, sif_scaled
from linker.encoders.cnn import CnnConfig
from linker.encoders.gru import BiGruConfig, GruConfig
from linker.encoders.star import StarConfig
from linker.encoders.text import ModelConfig, TextEncoder
from linker.errors import InputError, LinkerError
from linker.tokens import Vocabulary, WordTokenizer

TEXTS = ["a b c", "", "d", "unknown words only", "a " * 30, "c b a d e f g"]
CONFIGS: list[ModelConfig] = [
    StarConfig(dim=8, heads=2, head_dim=4, layers=2),
    StarConfig(dim=8, heads=2, head_dim=4, residual=True, max_weight=0.1),
    BagConfig(8),
    BagConfig(8, projection=5),
    CnnConfig(8, widths=(2, 3), filters=6),
    GruConfig(8, hidden=6),
    GruConfig(8, hidden=6, projection=0),
    BiGruConfig(8, hidden=5, layers=2, projection=7),
]


def build(config: ModelConfig) -> TextEncoder:
    torch.manual_seed(0)
    return TextEncoder.new(config, WordTokenizer(Vocabulary.of("abcdefg")), max_length=20)


@pytest.mark.parametrize("config", CONFIGS)
def test_encode_keeps_order_and_norms_whatever_the_batch_size(config: ModelConfig) -> None:
    encoder = build(config)
    assert isinstance(encoder, Encoder)
    one_by_one = np.concatenate([encoder.encode([text]) for text in TEXTS])
    for batch_size in (1, 2, 64):
        vectors = encoder.encode(TEXTS, batch_size=batch_size)
        assert vectors.dtype == np.float32
        assert np.abs(vectors - one_by_one).max() < 1e-6
    lengths = np.linalg.norm(one_by_one, axis=1)
    assert np.isfinite(one_by_one).all()
    assert lengths[[0, 2, 4, 5]] == pytest.approx([1] * 4, abs=1e-5)
    assert encoder.encode([]).shape == (0, encoder.dim)


@pytest.mark.parametrize("config", CONFIGS)
def test_saved_and_loaded_is_the_same(config: ModelConfig, tmp_path: Path) -> None:
    encoder = build(config)
    folders.save(encoder, tmp_path / "model", "Trained on nothing.")
    loaded = load_encoder(tmp_path / "model")
    assert isinstance(loaded, TextEncoder)
    assert loaded.fingerprint == encoder.fingerprint
    assert (loaded.config, loaded.kind) == (config, encoder.kind)
    assert np.array_equal(loaded.encode(TEXTS), encoder.encode(TEXTS))
    assert "Trained on nothing." in (tmp_path / "model/README.md").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]  # nothing temporary is left
    folders.save(build(CONFIGS[0]), tmp_path / "model")  # over an old one
    assert load_encoder(tmp_path / "model").fingerprint == build(CONFIGS[0]).fingerprint


def test_the_fingerprint_covers_weights_configuration_and_vocabulary() -> None:
    encoder = build(CONFIGS[0])
    changed = build(CONFIGS[0])
    with torch.no_grad():
        next(changed.module.parameters())[3, 0] += 1e-3
    others = [
        changed,
        dataclasses.replace(encoder, max_length=21),
        dataclasses.replace(encoder, tokenizer=WordTokenizer(Vocabulary.of("abcdegf"))),
    ]
    assert len({encoder.fingerprint, *(e.fingerprint for e in others)}) == 4
    assert build(CONFIGS[0]).fingerprint == encoder.fingerprint


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "altered"])
def test_a_damaged_folder_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    folders.save(build(CONFIGS[0]), tmp_path / "m")
    file = tmp_path / "m" / name
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    else:  # still readable
        values = {"config.json": (b"20", b"21"), "tokenizer.json": (b'"a"', b'"z"')}
        old, new = values.get(name, (content[-4:], bytes([content[-4] ^ 1]) + content[-3:]))
        file.write_bytes(content.replace(old, new))
        assert file.read_bytes() != content
    with pytest.raises(LinkerError, match=r"\w"):
        folders.load(tmp_path / "m")
    if damage == "altered":
        with pytest.raises(InputError, match="damaged"):
            load_encoder(tmp_path / "m")


def test_a_newer_format_and_an_unknown_kind_are_refused(tmp_path: Path) -> None:
    folders.save(build(CONFIGS[0]), tmp_path / "m")
    config = tmp_path / "m/config.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps(settings | {"format": "linker-encoder-9"}))
    with pytest.raises(InputError, match="linker-encoder-9"):
        load_encoder(tmp_path / "m")
    config.write_text(json.dumps(settings | {"kind": "rnn"}))
    with pytest.raises(InputError, match="rnn"):
        load_encoder(tmp_path / "m")


def test_sif_scaling_worked() -> None:
    scaled = sif_scaled(np.ones((3, 2), np.float32), np.array([0, 1, 999], np.int64), a=1e-3)
    assert scaled[:, 0] == pytest.approx([1, 1e-3 / (1e-3 + 1e-3), 1e-3 / (1e-3 + 0.999)])
