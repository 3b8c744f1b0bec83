"""The budget of Danovitch's table: the ready configuration `ast-paper`, in which only the model differs."""

import dataclasses
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from benchmarks.published_star import ACCEPTED, MEASURES, MODELS, PUBLISHED, STUDY, UNTIL, report, settings
from benchmarks.support.common import shared_data
from benchmarks.support.glove import export
from linker.encoders.tokens import load_word_vectors
from linker.papers.all_pairs.result import RANKS
from linker.training import ready


def test_all_models_have_the_budget_of_ast_paper(tmp_path: Path) -> None:
    found = {model: settings("tweets2claims", model, 3, [], tmp_path) for model in MODELS}
    own = tomllib.loads(ready.text_of("ast-paper"))
    assert {key: getattr(found["cnn"].training, key) for key in own["training"]} == own["training"]
    for model, config in found.items():
        same = dataclasses.replace(config, encoder=found["cnn"].encoder, output=found["cnn"].output)
        assert same == found["cnn"]
        assert config.encoder.kind == ("star" if model == "ast-paper" else model.removesuffix("-author"))
    changed = settings("tweets2claims", "gru", 3, ["training.epochs=2"], tmp_path)
    assert changed.training == dataclasses.replace(found["gru"].training, epochs=2)


def test_published_means_are_those_of_eight_ranks() -> None:
    """The paper prints seven precisions of its star: the eighth follows from their mean, and is the lowest."""
    shown = dict(zip(MEASURES, PUBLISHED["ast-paper"], strict=False))
    precisions = [shown[f"P@{rank}"] for rank in RANKS[:-1]]
    assert 0.4 < 8 * shown["mRP"] - sum(precisions) < precisions[-1]


def test_words_of_several_pieces_are_exported_with_their_mean(tmp_path: Path) -> None:
    source = shared_data() / "word-vectors-en"
    if not source.exists():
        pytest.skip("the shared data are not here")
    texts = ["tokenization of news", "tokenization of news, 東"]
    export(source, texts, tmp_path / "vectors.txt")
    exported = load_word_vectors(tmp_path / "vectors.txt")
    pieces = load_word_vectors(source)
    assert sorted(exported.tokenizer.tokens(" ".join(texts), 100)[:3]) == ["news", "of", "tokenization"]
    (row,) = exported.tokenizer.encode_batch(["tokenization"], 9)[0]
    (ids,) = pieces.tokenizer.encode_batch(["tokenization"], 9)
    assert len(ids) > 1
    np.testing.assert_allclose(exported.matrix[row], pieces.matrix[ids].mean(0), rtol=1e-4, atol=1e-5)


def test_a_report_takes_means_over_seeds(tmp_path: Path) -> None:
    folder = tmp_path / "own/tweets2claims"
    folder.mkdir(parents=True)
    for seed, value in enumerate((0.25, 0.75)):
        trial = {"links": 202, "training_links": 999, "dim": 128, "changes": [], "epochs": 10, "length": 1000}
        study = dict.fromkeys(STUDY, value) | {"precision": None}
        figures = dict.fromkeys(MEASURES, value)
        (folder / f"cnn-author-{seed}.json").write_text(
            json.dumps({**trial, "figures": figures, "study": study})
        )
    first, second = report(tmp_path)
    (row,) = first["rows"]
    assert row["here"]["mAP"] == {"mean": 0.5, "sd": 0.3536}
    assert row["published"]["AUC"] == 0.9709
    # Three ranks of at most 202, then 202 (1/500 + 1/1000 + 1/2000 + 1/3000 + 1/3300): the mean of these eight.
    assert "allow an mRP of 0.479 at most" in first["why"]
    assert "precision" not in second["rows"][0]["here"]
    assert f"{ACCEPTED}" in second["title"] and f"until {UNTIL[0]}" in second["measures"]
