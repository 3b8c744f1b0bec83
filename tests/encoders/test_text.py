"""Encoders as folders: the same vectors after saving, whatever the batches; damage is detected."""

import dataclasses
import json
import threading
import time
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch

from linker.base.errors import InputError, LinkerError
from linker.encoders import folder as folders
from linker.encoders.bag import BagOfVectors, sif_scaled
from linker.encoders.configs import (
    KINDS,
    BagConfig,
    BiGruConfig,
    CnnConfig,
    GruConfig,
    Kind,
    ModelConfig,
    StarConfig,
    kind_of,
)
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.encoders.opened import Turns
from linker.encoders.text import MODELS, TextEncoder, padded
from linker.encoders.tokens import Vocabulary, WordTokenizer
from tests.helpers import ROOT

TEXTS = ["a b c", "", "d", "unknown words only", "a " * 30, "c b a d e f g"]
CONFIGS: list[ModelConfig] = [
    StarConfig(dim=8, heads=2, head_dim=4, layers=2),
    StarConfig(dim=8, heads=2, head_dim=4, residual=True, max_weight=0.1),
    StarConfig(dim=8, heads=3, head_dim=4, residual=True, pre_norm=True, contrast=1.0),
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


def test_a_batch_of_long_texts_is_short() -> None:
    encoder = build(BagConfig(8))
    encoder.max_length = 10_000
    seen: list[tuple[int, ...]] = []
    encoder.module.register_forward_pre_hook(lambda _, inputs: seen.append(tuple(inputs[0].shape)))
    encoder.encode(["a " * 6_000, *["b " * 300] * 70, "", "c " * 40_000])
    assert seen == [(1, 10_000), (2, 6_000), (54, 300), (16, 300)]


@pytest.mark.parametrize("config", CONFIGS)
def test_bfloat16_stays_close_and_is_the_same_model(config: ModelConfig, tmp_path: Path) -> None:
    encoder = build(config)
    for parameter in encoder.module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    texts = [" ".join("abcdefg"[i % 7] for i in range(start, start * 2 + 1)) for start in range(19)]
    folders.save(encoder, tmp_path / "m")
    half = load_encoder(tmp_path / "m", precision="bfloat16")
    exact, near = encoder.encode(texts), half.encode(texts)
    assert near.dtype == np.float32
    assert np.linalg.norm(near, axis=1) == pytest.approx([1.0] * len(texts), abs=1e-5)
    assert (exact * near).sum(1).min() >= 0.999
    assert half.fingerprint == encoder.fingerprint  # either may search the other's index


def test_bfloat16_is_used() -> None:
    encoder = build(CONFIGS[0])
    exact = encoder.encode(TEXTS)
    encoder.precision = "bfloat16"
    assert 0 < np.abs(encoder.encode(TEXTS) - exact).max() < 0.05


def test_compiling_without_a_compiler_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.save(build(BagConfig(8)), tmp_path / "m")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(InputError, match=r"no-such-compiler.*continue without"):
        load_encoder(tmp_path / "m", compiled=True)


def test_a_model_goes_to_the_gpu_that_pytorch_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = build(CONFIGS[0])
    folders.save(encoder, tmp_path / "model")
    loaded = load_encoder(tmp_path / "model", gpu=True)
    assert isinstance(loaded, TextEncoder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    assert {weight.device.type for weight in loaded.module.parameters()} == {device}
    assert np.abs(loaded.encode(TEXTS) - encoder.encode(TEXTS)).max() < 1e-3
    assert loaded.fingerprint == encoder.fingerprint
    if device == "cpu":  # it does use a GPU if told that there is one
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        with pytest.raises((AssertionError, RuntimeError), match=r"CUDA|NVIDIA"):
            load_encoder(tmp_path / "model", gpu=True)


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
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]  # no temporary files are left
    folders.save(build(CONFIGS[0]), tmp_path / "model")  # over an old model
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


def test_a_bag_is_the_mean_of_its_words() -> None:
    bag = BagOfVectors(BagConfig(4), 9)
    ids, mask = padded([[3, 5, 5], [7]])
    words = bag.embedding.weight
    torch.testing.assert_close(bag(ids, mask), torch.stack([(words[3] + 2 * words[5]) / 3, words[7]]))


@pytest.mark.parametrize("training", [True, False])
def test_encoding_drops_nothing_and_leaves_the_mode_as_it_was(training: bool) -> None:
    encoder = build(CnnConfig(8, widths=(2,), filters=4, dropout=0.5))
    encoder.module.eval()
    expected = encoder.encode(["a b c", "b c"])
    encoder.module.train(training)
    np.testing.assert_array_equal(encoder.encode(["a b c", "b c"]), expected)
    assert encoder.module.training == training


def test_every_kind_has_a_module_and_is_described_and_trained() -> None:
    """A new kind adds its module, its settings and its name; these are the other places that must know it."""
    assert list(KINDS) == list(get_args(Kind)) == list(MODELS)
    page = (ROOT / "docs/training.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f'"{kind}"' not in page] == []
    assert {kind_of(config) for config in CONFIGS} == {*KINDS}


def _order(sizes: list[int]) -> list[int]:
    """Return the order in which threads waiting with these amounts of work are admitted, by position in the list."""
    turns = Turns()
    order: list[int] = []
    inside: list[int] = []

    def work(place: int) -> None:
        with turns.of(sizes[place]):
            inside.append(place)
            time.sleep(0.002)
            assert inside == [place]
            inside.pop()
            order.append(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(sizes))]
    with turns.of(10**6):
        for number, thread in enumerate(threads, 1):
            thread.start()
            while len(turns._waiting) < number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return order


def test_the_least_work_comes_first() -> None:
    assert _order([9000, 50, 700, 3, 9001]) == [3, 1, 2, 0, 4]


def test_equals_come_in_the_order_in_which_they_came() -> None:
    assert _order([5] * 8) == list(range(8))


def test_a_failure_inside_lets_the_next_one_in() -> None:
    turns = Turns()
    try:
        with turns.of(1):
            raise ValueError
    except ValueError:
        pass
    with turns.of(1):
        pass
