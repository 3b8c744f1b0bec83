"""From a BEIR-like folder and a TOML file to a model; word vectors; the demo's stories."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from linker.base.config import load
from linker.base.errors import ConfigError, InputError
from linker.demo.training import split_opening
from linker.encoders.configs import StarConfig
from linker.encoders.loading import load_encoder
from linker.training import loop
from linker.training.batches import Batch
from linker.training.config import DataConfig, TrainConfig
from linker.training.run import read_pairs, run
from linker.training.vectors import lsa_vectors, start_vectors, token_counts


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["encoder.preset=paper", "data.word_vectors=random", "training.loss=triplet"],
        ["encoder.kind=bag", "data.word_vectors=gensim", "data.word_epochs=1"],
        [
            "training.mean_epochs=2", "training.hard_negatives=1", "training.crop=true",
            "training.max_length=6",
        ],
    ],
)  # fmt: skip
def test_a_toml_file_becomes_a_model(config: Path, overrides: list[str]) -> None:
    bag = [] if "encoder.kind=bag" not in overrides else ["encoder.projection=7"]
    if bag:
        config.write_text(config.read_text().replace("heads = 2\nhead_dim = 4\n", ""))
    folder = run(load(config, TrainConfig, [*overrides, *bag]))
    encoder = load_encoder(folder)
    assert encoder.dim == (7 if bag else 16)
    assert np.isfinite(encoder.encode(["word1 word2", ""])).all()
    assert run(load(config, TrainConfig, [*overrides, *bag]), resume=True) == folder


BASELINES = {
    "cnn": ["encoder.widths=[2,3]", "encoder.filters=6", "encoder.dropout=0.2"],
    "gru": ["encoder.hidden=6", "encoder.layers=2"],
    "bigru": ["encoder.hidden=5"],
}


@pytest.mark.parametrize("kind", BASELINES)
def test_baselines_resume(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    config.write_text(config.read_text().replace("heads = 2\nhead_dim = 4\n", f'kind = "{kind}"\n'))
    options = [*BASELINES[kind], "training.epochs=2", "training.checkpoint_steps=2"]
    whole = load(config, TrainConfig, [*options, f"output.path={tmp_path}/whole"])
    run(whole)
    step = loop._Trainer._step

    def interrupted(trainer: loop._Trainer, batch: Batch) -> float:
        if trainer.progress.step == 3:
            raise KeyboardInterrupt
        return step(trainer, batch)

    parts = load(config, TrainConfig, options)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop._Trainer, "_step", interrupted)
        run(parts)
    encoders = [load_encoder(folder) for folder in (run(whole, resume=True), run(parts, resume=True))]
    vectors = [encoder.encode(["word1 word2", "", "word3"]) for encoder in encoders]
    assert encoders[0].fingerprint.startswith(f"{kind}-")
    assert np.abs(vectors[0] - vectors[1]).max() < 1e-6
    assert not vectors[0][1].any()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["encoder.kind=cnn", "encoder.hidden=4"], r"encoder\.hidden does not apply to the kind 'cnn'"),
        (["encoder.kind=bigru", "encoder.filters=4"], r"encoder\.filters does not apply to the kind 'bigru'"),
        (["encoder.kind=cnn", "encoder.widths=[]"], "at least one width"),
        (["encoder.kind=gru", "encoder.hidden=0"], "hidden and layers must be at least 1"),
    ],
)
def test_a_baselines_settings_are_checked(config: Path, overrides: list[str], message: str) -> None:
    config.write_text(config.read_text().replace("heads = 2\nhead_dim = 4\n", ""))
    with pytest.raises(ConfigError, match=message):
        run(load(config, TrainConfig, overrides))


def test_a_cosine_in_attention_does_without_the_presets_contrast(config: Path) -> None:
    config.write_text(config.read_text().replace("heads = 2\nhead_dim = 4\n", ""))
    model = load(config, TrainConfig, ["encoder.score=cosine"]).encoder.model
    assert isinstance(model, StarConfig)
    assert (model.contrast, model.score, model.residual) == (None, "cosine", True)
    with pytest.raises(ConfigError, match="leave out contrast or score = 'cosine'"):
        load(config, TrainConfig, ["encoder.score=cosine", "encoder.contrast=2.0"])


def test_what_cannot_be_used_is_named(config: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"encoder\.projection does not apply"):
        run(load(config, TrainConfig, ["encoder.projection=4"]))
    (tmp_path / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tnowhere\t1\n")
    with pytest.raises(InputError, match=r"train\.tsv links to the document 'nowhere'"):
        run(load(config, TrainConfig))
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.txt").write_text("keep me")
    with pytest.raises(InputError, match="not a model"):
        run(load(config, TrainConfig, [f"output.path={tmp_path}/full"]))


def test_lsa_of_full_rank_keeps_the_texts_inner_products() -> None:
    ids = [[2, 3, 4, 4], [4, 5], [2, 6, 7, 3], [7, 5, 5]]
    counts = token_counts(ids, 8)
    weights = 1e-4 / (1e-4 + counts / counts.sum())
    x = np.array(
        [[(t.count(w) > 0) * (1 + np.log(max(t.count(w), 1))) * weights[w] for w in range(8)] for t in ids]
    )
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    _, values, right = np.linalg.svd(x)
    vectors = lsa_vectors(ids, 8, dim=3)
    assert vectors.shape == (8, 3)
    expected = right[:3].T @ right[:3]  # the basis may rotate and flip; the products may not
    assert values[2] > values[3]
    assert np.abs(vectors @ vectors.T - expected).max() < 1e-5
    assert not vectors[:2].any()


def test_openings() -> None:
    story = 'Mr. Jones of the U.S. said "No more of this today." The rest follows. More.'
    assert split_opening(story) == (
        'Mr. Jones of the U.S. said "No more of this today."',
        "The rest follows. More.",
    )
    assert split_opening("One sentence only, of some words.") == ("One sentence only, of some words.", "")


def test_a_finished_model_is_not_trained_over(config: Path, tmp_path: Path) -> None:
    settings = load(config, TrainConfig)
    run(settings)
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    with pytest.raises(InputError, match="continue with `resume`, or give another"):
        run(settings)
    run(settings, resume=True)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before


def test_a_training_says_from_the_start_what_it_does(config: Path) -> None:
    command = [
        sys.executable, "-m", "linker", "train", str(config), "--no-plots", "--set", "training.mean_epochs=1",
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr and process.stdout
        first = process.stderr.readline()
        assert not (config.parent / "model").exists()
        lines = [first, *process.stderr]
        assert process.stdout.read() == f"{config.parent}/model\n"
    assert [line.rstrip() for line in lines] == [
        f"training as {config} says: loading PyTorch",
        f"device: {'cuda' if torch.cuda.is_available() else 'cpu'}", f"reading {config.parent}/queries.jsonl",
        f"30 queries; reading {config.parent}/corpus.jsonl", "30 documents",
        f"20 links in {config.parent}/train.tsv", f"10 links in {config.parent}/dev.tsv", "word vectors: lsa",
        "word vectors: learning as a mean, mean_epochs = 1", "training: star, epochs = 1",
    ]  # fmt: skip


def test_the_first_line_does_not_wait_for_pytorch(config: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from linker.cli import main; main()"
    command = [sys.executable, "-c", code, "train", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.startswith(f"training as {config} says: loading PyTorch\n")
    assert done.returncode == 1 and "[train]'" in done.stderr


def test_the_mean_reads_whole_texts_however_little_the_star_reads(config: Path) -> None:
    folder = run(load(config, TrainConfig, ["training.mean_epochs=1", "encoder.max_length=4"]))
    mean, star = load_encoder(folder / "training/mean"), load_encoder(folder)
    long = "word1 " * 600 + "word2 " * 1400
    same = {
        name: e.encode([long])[0] @ e.encode(["word1"])[0] > 0.9999
        for name, e in (("mean", mean), ("star", star))
    }
    assert same == {"mean": False, "star": True}  # the star stops after four tokens
    longer = run(
        load(
            config,
            TrainConfig,
            ["training.mean_epochs=1", "encoder.max_length=3000", f"output.path={folder}2"],
        )
    )
    assert json.loads((longer / "training/mean/config.json").read_text())["max_length"] == 3000


def test_a_repeated_link_is_dropped_with_a_warning_and_a_contradiction_refused(config: Path) -> None:
    links = config.parent / "train.tsv"
    text = links.read_text()
    said: list[str] = []
    settings = load(config, TrainConfig, [])
    plain, _ = read_pairs(settings, said.append)
    assert not any("warning" in line for line in said)
    links.write_text(text + "q0\td0\t1\n")
    repeated, _ = read_pairs(settings, said.append)
    assert repeated.links == plain.links
    warning = next(line for line in said if "warning" in line)
    assert f"{links}:22: repeats the judgement in {links}:2" in warning
    assert "dropped 1 repeated line" in warning
    links.write_text(text + "q0\td0\t0\n")
    with pytest.raises(InputError, match=r"train\.tsv:22: .*train\.tsv:2, relevance 1 there and 0 here"):
        read_pairs(settings)


@pytest.mark.parametrize("rescale", [False, True])
def test_vectors_of_a_file_keep_their_lengths_unless_they_are_rescaled(tmp_path: Path, rescale: bool) -> None:
    (tmp_path / "vectors.txt").write_text("fox 3 4\nwhale 0 15\n")
    none, vectors_of = tmp_path / "none", str(tmp_path / "vectors.txt")
    data = DataConfig(none, none, none, word_vectors=vectors_of, sif=0.0, rescale=rescale)
    tokenizer, vectors = start_vectors(data, ["a fox", "a whale"], 0)
    ((fox, whale),) = tokenizer.encode_batch(["fox whale"], 9)
    lengths = np.linalg.norm(vectors, axis=1)
    assert lengths[whale] / lengths[fox] == pytest.approx(3)
    if rescale:
        assert lengths[lengths > 0].mean() == pytest.approx(1)
    else:
        assert lengths[[fox, whale]].tolist() == [5, 15]
