"""Rows of docs/measured.md: measured with the settings of a ready configuration, or differences are named."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest

from linker.training import ready
from linker.training.config import TrainingConfig
from tests.helpers import ROOT

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
        "All rows use the word vectors word-vectors-en with `lsa_dim = 172`, whereas the ready configurations"
    )
    assert shared in MEASURED
    for name in ready.names():
        assert tomllib.loads(ready.text_of(name))["data"]["word_vectors"] in ("lsa", "gensim")
