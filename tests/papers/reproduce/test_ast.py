"""The budget of Danovitch's table: the ready configuration `ast-paper`, in which only the model differs."""

import dataclasses
import gzip
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from linker.encoders.tokens import load_word_vectors
from linker.papers.reproduce import posts
from linker.papers.reproduce.ast import MODELS, settings
from linker.papers.reproduce.posts import GLOVE, Posts, export
from linker.training import ready
from tests.helpers import shared_data

SPLITS = {split: Path(split) for split in ("train", "dev", "test")}
POSTS = Posts("posts", Path("queries"), Path("corpus"), SPLITS, "random", official=False)


def test_all_models_have_the_budget_of_ast_paper(tmp_path: Path) -> None:
    found = {model: settings(POSTS, model, 3, 128, tmp_path, []) for model in MODELS}
    own = tomllib.loads(ready.text_of("ast-paper"))
    assert {key: getattr(found["cnn"].training, key) for key in own["training"]} == own["training"]
    for model, config in found.items():
        if model in ("ast-rescaled", "ast-frozen"):
            continue
        same = dataclasses.replace(config, encoder=found["cnn"].encoder, output=found["cnn"].output)
        assert same == found["cnn"]
        kind = "star" if model.startswith("ast-") else model.removesuffix("-author")
        assert config.encoder.kind == kind
    changed = settings(POSTS, "gru", 3, 128, tmp_path, ["training.epochs=2"])
    assert changed.training == dataclasses.replace(found["gru"].training, epochs=2)


def test_the_author_s_models_are_as_wide_as_his_and_his_star_is_his(tmp_path: Path) -> None:
    found = {
        model: dataclasses.asdict(settings(POSTS, model, 3, 300, tmp_path, []).encoder.model)
        for model in MODELS
    }
    assert found["gru-author"]["hidden"] == 300
    assert found["bigru-author"]["hidden"] == 150  # per direction
    assert (found["cnn-author"]["widths"], found["cnn-author"]["filters"]) == ((1, 2, 3, 4), 300)
    star = found["ast-paper"]
    assert (star["heads"], star["head_dim"], star["window"], star["layers"]) == (10, 30, 2, 1)
    assert (star["alpha_form"], star["first_token_key"]) == ("clamped", True)
    assert (found["ast-two"]["layers"], found["ast-cosine"]["score"]) == (2, "cosine")
    first = settings(POSTS, "ast-paper", 3, 300, tmp_path, [])
    frozen, rescaled = (settings(POSTS, f"ast-{x}", 3, 300, tmp_path, []) for x in ("frozen", "rescaled"))
    assert frozen.training == dataclasses.replace(first.training, embedding_lr=0)
    assert rescaled.data == dataclasses.replace(first.data, rescale=True)


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
    own, mean = exported.matrix[row], pieces.matrix[ids].mean(0)
    np.testing.assert_allclose(own / np.linalg.norm(own), mean / np.linalg.norm(mean), rtol=1e-3, atol=1e-4)
    assert np.linalg.norm(exported.matrix[2:], axis=1).mean() == pytest.approx(GLOVE, rel=1e-3)


def test_links_in_one_file_are_split_and_a_large_set_is_sampled_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts, "KEPT", {"train": 8, "dev": 3, "test": 2})
    data, pages = tmp_path / "descriptions", tmp_path / posts.ELSEWHERE["descriptions"]
    (data / "qrels").mkdir(parents=True)
    pages.parent.mkdir(parents=True)
    (data / "queries.jsonl").write_text(_lines("q", 20), encoding="utf-8")
    pages.write_bytes(gzip.compress(_lines("d", 40).encode()))
    (data / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(20)), encoding="utf-8"
    )
    (found,) = posts.sets(tmp_path, tmp_path / "work", quick=False)
    links = [path.read_text(encoding="utf-8").splitlines()[1:] for path in found.links.values()]
    assert dict(zip(found.links, map(len, links), strict=True)) == {"train": 8, "dev": 2, "test": 2}
    linked = {line.split("\t")[1] for lines in links for line in lines}
    kept = [json.loads(line)["_id"] for line in found.documents.read_text(encoding="utf-8").splitlines()]
    assert len(kept) == 12 and {*kept} == linked
    config = settings(found, "cnn", 0, 128, tmp_path, found.settings)
    assert (config.training.max_length, config.encoder.max_length) == (128, 128)
    for split, path in found.links.items():  # a set that is small enough stays as it is
        (data / "qrels" / f"{split}.tsv").write_bytes(path.read_bytes())
    (whole,) = posts.sets(tmp_path, tmp_path / "work", quick=False)
    assert (whole.documents, whole.settings) == (pages, ())


def _lines(prefix: str, count: int) -> str:
    return "".join(json.dumps({"_id": f"{prefix}{n}", "text": "a page"}) + "\n" for n in range(count))
