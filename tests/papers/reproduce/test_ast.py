"""The budget of Danovitch's table: the ready configuration `ast-paper`, in which only the model differs."""

import dataclasses
import tomllib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from linker.encoders.tokens import load_word_vectors
from linker.papers.reproduce.ast import MODELS, settings
from linker.papers.reproduce.posts import Posts, export
from linker.training import ready
from tests.helpers import shared_data

SPLITS = {split: Path(split) for split in ("train", "dev", "test")}
POSTS = Posts("posts", Path("queries"), Path("corpus"), SPLITS, "random", official=False)


def test_all_models_have_the_budget_of_ast_paper(tmp_path: Path) -> None:
    found = {model: settings(POSTS, model, 3, 128, tmp_path, []) for model in MODELS}
    own = tomllib.loads(ready.text_of("ast-paper"))
    assert {key: getattr(found["cnn"].training, key) for key in own["training"]} == own["training"]
    for model, config in found.items():
        same = dataclasses.replace(config, encoder=found["cnn"].encoder, output=found["cnn"].output)
        assert same == found["cnn"]
        assert config.encoder.kind == ("star" if model == "ast-paper" else model.removesuffix("-author"))
    assert dataclasses.asdict(found["gru-author"].encoder.model)["hidden"] == 128
    changed = settings(POSTS, "gru", 3, 128, tmp_path, ["training.epochs=2"])
    assert changed.training == dataclasses.replace(found["gru"].training, epochs=2)


def test_words_of_several_pieces_are_exported_with_their_mean(tmp_path: Path) -> None:
    source = shared_data("word-vectors-en")
    texts = ["tokenization of news", "tokenization of news, 東"]
    export(source, texts, tmp_path / "vectors.txt")
    exported = load_word_vectors(tmp_path / "vectors.txt")
    pieces = load_word_vectors(source)
    assert sorted(exported.tokenizer.tokens(" ".join(texts), 100)[:3]) == ["news", "of", "tokenization"]
    (row,) = exported.tokenizer.encode_batch(["tokenization"], 9)[0]
    (ids,) = pieces.tokenizer.encode_batch(["tokenization"], 9)
    assert len(ids) > 1
    np.testing.assert_allclose(exported.matrix[row], pieces.matrix[ids].mean(0), rtol=1e-4, atol=1e-5)
