"""Stock CrossEncoders as rerankers, and the passages that they read."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.scoring.pairs.stock import CrossEncoderScorer, best_passages, is_cross_encoder
from linker.scoring.reranking import load_reranker
from tests.helpers import linker

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
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    linker("index", "build", tmp_path / "c.jsonl", "--out", tmp_path / "index")
    done = linker("search", tmp_path / "index", "rain", "--rerank", model / "saved", "--json")
    answer = json.loads(done.stdout)
    scorer = CrossEncoderScorer(model / "saved")
    expected = dict(zip("ab", scorer.score([("rain", line["text"]) for line in lines]).tolist(), strict=True))
    assert answer["reranked"] is True
    assert {hit["id"]: hit["score"] for hit in answer["hits"]} == pytest.approx(expected, abs=1e-5)
    assert [hit["id"] for hit in answer["hits"]] == sorted(expected, key=lambda i: -expected[i])
