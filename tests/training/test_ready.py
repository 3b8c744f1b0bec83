"""Built-in configurations: each is parsed strictly, printed, copied and trained; `linker train` plots at the end."""

import dataclasses
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from linker.base.config import load
from linker.base.errors import ConfigError
from linker.encoders.configs import PRESETS
from linker.encoders.star import StarTransformer
from linker.training import ready
from linker.training.config import TrainConfig, TrainingConfig
from tests.helpers import ROOT, linker, write_json_lines

NAMES = ["ast", "ast-paper", "ast-posts", "bag", "bigru", "cnn", "distil", "gru"]
DATA = ["data.queries=q.jsonl", "data.documents=c.jsonl", "data.train=t.tsv", "output.path=model"]


def test_there_are_eight() -> None:
    assert ready.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_ready_file_is_whole_but_for_the_data(name: str) -> None:
    config = load(ready.find(Path(name), DATA), TrainConfig, DATA)
    star = name in ("ast", "ast-paper", "ast-posts", "distil")
    assert config.encoder.kind == ("star" if star else name)
    if star:
        preset = PRESETS["paper" if name == "ast-paper" else "recommended"]
        assert config.encoder.model == dataclasses.replace(preset, key_inputs=name == "ast-posts")
    assert config.training.teacher == ("minilm" if name == "distil" else None)
    assert config.data.queries == Path("q.jsonl")
    assert linker("train", "--show", name).stdout == ready.text_of(name)


def test_a_printed_file_can_be_filled_in(tmp_path: Path) -> None:
    text = ready.text_of("ast").replace("[data]", '[data]\nqueries = "q"\ndocuments = "d"\ntrain = "t"')
    (tmp_path / "mine.toml").write_text(text)
    found = ready.find(tmp_path / "mine.toml", ["output.path=m"])
    assert found == tmp_path / "mine.toml"
    assert load(found, TrainConfig, ["output.path=m"]).data.train == Path("t")


def test_what_is_missing_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = linker("train", "ast", "--set", "data.train=t.tsv", check=1).stderr
    assert "--set data.queries=PATH --set data.documents=PATH --out MODEL" in error
    assert "data.train=PATH" not in error
    assert "linker train --show ast" in error
    assert "did you mean bigru?" in linker("train", "bigr", check=1).stderr
    assert "no built-in configuration 'x'" in linker("train", "--show", "x", check=1).stderr
    assert "ast-paper" in linker("train", check=2).stderr
    monkeypatch.chdir(tmp_path)
    Path("ast").write_text("not a key")
    with pytest.raises(ConfigError, match="cannot read ast: "):  # a file of that name takes precedence
        load(ready.find(Path("ast"), []), TrainConfig)


def write_data(folder: Path) -> list[str]:
    """Write twelve documents, and texts that are their first words; return the options for them."""
    texts = [f"alpha{i} beta{i % 4} gamma{i % 3}" for i in range(12)]
    records = {
        "queries.jsonl": [{"_id": f"q{i}", "text": t} for i, t in enumerate(texts)],
        "corpus.jsonl": [{"_id": f"d{i}", "text": f"{t} delta{i} beta{i % 4}"} for i, t in enumerate(texts)],
    }
    for name, rows in records.items():
        write_json_lines(folder / name, rows)
    for name, part in (("train.tsv", range(8)), ("dev.tsv", range(8, 12))):
        links = "".join(f"q{i}\td{i}\t1\n" for i in part)
        (folder / name).write_text("query-id\tcorpus-id\tscore\n" + links)
    keys = {"queries": "queries.jsonl", "documents": "corpus.jsonl", "train": "train.tsv", "dev": "dev.tsv"}
    paths = [f"data.{key}={folder / name}" for key, name in keys.items()]
    small = ["data.dim=8", "data.min_count=1", "data.word_vectors=lsa", "training.epochs=1"]
    return [argument for text in (*paths, *small) for argument in ("--set", text)]


def test_training_by_name_draws_at_the_end(tmp_path: Path) -> None:
    options = write_data(tmp_path)
    small = ["--set", "encoder.heads=2", "--set", "encoder.head_dim=3"]
    done = linker("train", "ast", *options, *small, "--out", tmp_path / "model")
    assert done.stdout == f"{tmp_path / 'model'}\n"
    drawn = {path.name for path in (tmp_path / "model/training").glob("*.svg")}
    assert drawn >= {"loss.svg", "dev.svg", "alpha.svg", "documents.svg"}

    from linker.encoders import folder

    assert isinstance(folder.load(tmp_path / "model").module, StarTransformer)


def test_training_without_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = write_data(tmp_path)
    linker("train", "bag", *options, "--out", tmp_path / "one", "--no-plots")
    assert not list((tmp_path / "one/training").glob("*.svg"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    done = linker("train", "bag", *options, "--out", tmp_path / "two")
    assert done.stdout == f"{tmp_path / 'two'}\n"
    assert "no plots: " in done.stderr
    assert "[plot]'" in done.stderr


pytest.importorskip("torch")
RESULTS = json.loads((ROOT / "benchmarks/results/ast_tables.json").read_text())["results"]
MEASURED = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
TRAINED = [(data, name) for data, rows in RESULTS.items() for name, row in rows.items() if "settings" in row]
CONFIGURATION = {"ast, cloze": "ast", "mean": "bag", "mean, cloze": "bag"}


def line_of(data: str, name: str) -> str:
    table = MEASURED.partition(f"| {data} | mAP")[2].partition("\n\n")[0]
    return next(
        line for line in table.splitlines() if re.match(rf"\| {re.escape(name)} \(\d seeds?\) ", line)
    )


def shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def test_every_trained_row_has_its_settings() -> None:
    for rows in RESULTS.values():
        for name, row in rows.items():
            assert ("settings" in row) == ("seeds" in row), name
    assert len(TRAINED) == 14


@pytest.mark.parametrize(("data", "name"), TRAINED)
def test_a_row_names_what_is_not_the_ready_configuration(data: str, name: str) -> None:
    line = line_of(data, name)
    of = CONFIGURATION.get(name, name)
    training = tomllib.loads(ready.text_of(of))["training"]
    settings = RESULTS[data][name]["settings"]
    assert f"| `{of}`" in line
    for key in (
        "epochs",
        "cloze",
        "mean_epochs",
        "batch_size",
        "lr",
        "max_length",
        "crop",
        "word_dropout",
        "patience",
    ):
        own = training.get(key, getattr(TrainingConfig(), key))
        value = settings[f"training.{key}"]
        named = re.search(rf"[:,] {key} (\S+) \((\S+)\)", line)
        if value == own:
            assert named is None, key
        else:
            assert named and named.groups() == (shown(value), shown(own)), key


def test_what_all_rows_share_is_said_once() -> None:
    assert {RESULTS[data][name]["settings"]["data.word_vectors"] for data, name in TRAINED} == {
        "word-vectors-en"
    }
    shared = (
        "All trained models use the word vectors word-vectors-en with `lsa_dim = 172`, whereas the built-in "
        "configurations"
    )
    assert shared in MEASURED
    for name in ready.names():
        assert tomllib.loads(ready.text_of(name))["data"]["word_vectors"] in ("lsa", "gensim")
