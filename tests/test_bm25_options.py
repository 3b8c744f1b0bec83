"""The options of BM25: at build, stored, shown, per query; and options that cannot be changed."""

import dataclasses
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from indexes.errors import IndexesError
from indexes.hybrid import Answer
from indexes.store import manifest as manifests
from indexes.store import records
from indexes.store.records import Manifest
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from indexes.writer import Writer
from linker import Engine, create
from tests.helpers import linker, write_json_lines

TEXTS = {"long": "cat " * 6 + "dog " * 30, "short": "cat #BigDog", "other": "mouse a"}
QUERY = "cat cat cat mouse"
BUILD = ("--k1", "2", "--b", "0.5", "--k3", "inf", "--min-token", "2", "--tokenizer", "posts", "--stop-words")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bm25")
    corpus = folder / "corpus.jsonl"
    write_json_lines(corpus, ({"id": i, "text": t} for i, t in TEXTS.items()))
    linker("index", "build", corpus, "--out", folder / "index", *BUILD)
    return folder / "index"


def hits(answer: Answer) -> list[tuple[str, float]]:
    (found,) = answer.hits
    return list(zip(found.ids, found.scores.tolist(), strict=True))


def searched(index: Path, *options: str) -> list[tuple[str, float]]:
    found = json.loads(linker("search", index, "--text", QUERY, "--json", *options).stdout)["hits"]
    return [(hit["id"], hit["score"]) for hit in found]


def test_a_build_stores_its_options_and_info_shows_them(index: Path) -> None:
    info = json.loads(linker("index", "info", index, "--json").stdout)
    assert info["bm25"] == {"k1": 2.0, "b": 0.5, "k3": None}
    assert info["analysis"] == {
        "language": "english", "tokenizer": "posts", "stop_words": True, "min_token": 2, "version": 2,
    }  # fmt: skip
    assert info["format"] == records.FORMAT
    engine = Engine.open(index)
    assert [h.ids for h in engine.search(["bigdog", "big", "a"]).hits] == [(), ("short",), ()]
    assert engine.search("#bigdog").hits[0].ids == ("short",)


def test_parameters_of_a_query_replace_the_stored_ones(index: Path) -> None:
    engine = Engine.open(index)
    stored = hits(engine.search(QUERY))
    assert searched(index) == stored
    once = hits(engine.search(QUERY, bm25=Bm25Parameters(2, 0.5, 0)))
    assert searched(index, "--k3", "0") == once != stored
    assert searched(index, "--k1", "0", "--b", "0") == hits(
        engine.search(QUERY, bm25=Bm25Parameters(0, 0, math.inf))
    )
    assert hits(engine.search(QUERY)) == stored


def test_a_parameter_out_of_range_is_named(index: Path, tmp_path: Path) -> None:
    for name, value, shown in (("k1", "-1", "-1.0"), ("b", "2", "2.0"), ("k3", "nan", "nan")):
        for command in (
            ("search", index, "--text", "cat"),
            ("index", "build", index, "--out", tmp_path / "new"),
        ):
            done = linker(*command, f"--{name}", value, check=1)
            assert f"BM25's {name} is {shown}" in done.stderr


def test_documents_that_are_added_are_analysed_alike(index: Path, tmp_path: Path) -> None:
    copy = tmp_path / "index"
    shutil.copytree(index, copy)
    corpus = tmp_path / "more.jsonl"
    corpus.write_text('{"id": "more", "text": "#SmallDog and the a_b"}\n')
    linker("index", "add", copy, corpus)
    engine = Engine.open(copy)
    assert [h.ids for h in engine.search(["small", "#smalldog", "a_b"]).hits] == [("more",)] * 3
    assert engine.collection.manifest.bm25 == Bm25Parameters(2, 0.5, math.inf)


def test_a_build_resumes_only_with_the_same_options(index: Path, tmp_path: Path) -> None:
    corpus, out = index.parent / "corpus.jsonl", tmp_path / "new"
    linker("index", "build", corpus, "--out", out)
    for options, named in (
        (("--k1", "2"), "--k1, --b, --k3 or --fields"),
        (("--fields", "text"), "--k1, --b, --k3 or --fields"),
        (("--tokenizer", "posts"), "--tokenizer, --stop-words or --min-token"),
    ):
        done = linker("index", "build", corpus, "--out", out, "--resume", *options, check=1)
        assert f"another {named}" in done.stderr


def test_create_takes_the_same_settings(tmp_path: Path) -> None:
    create(tmp_path / "i", tokenizer="posts", stop_words=True, min_token=3, bm25=Bm25Parameters(b=0))
    manifest = manifests.load(tmp_path / "i")
    assert manifest.analysis == AnalysisSettings("english", "posts", stop_words=True, min_token=3)
    assert manifest.bm25 == Bm25Parameters(b=0)


def test_a_manifest_with_other_settings_is_damaged(index: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(index, tmp_path / "index"))
    values = json.loads((copy / "manifest.json").read_bytes())
    del values["xxh3"]
    usual = AnalysisSettings().to_json()
    wrong: list[tuple[str, Any]] = [
        ("bm25", {"k1": 1.2, "b": 2, "k3": 1}), ("bm25", {"k1": 1.2, "b": 0.75}), ("bm25", None),
        ("bm25", {"k1": "1", "b": 0.75, "k3": 1}), ("bm25", {"k1": 1.2, "b": 0.75, "k3": 1, "k2": 0}),
        ("analysis", {"language": "english"}), ("analysis", {**usual, "version": 1}),
        ("analysis", {**usual, "min_token": True}), ("analysis", {**usual, "language": "klingon"}),
        ("language", "english"),
    ]  # fmt: skip
    for key, value in wrong:
        body = json.dumps({**values, key: value}).encode()[1:]
        (copy / "manifest.json").write_bytes(manifests._checked(body))
        with pytest.raises(IndexesError, match=r"manifest\.json is damaged"):
            manifests.load(copy)


def test_on_a_server_k1_and_b_stay() -> None:
    fixed = Manifest(elastic={"urls": ["http://x"], "index": "i", "shards": 1, "replicas": 0})
    writer = object.__new__(Writer)
    writer.manifest = dataclasses.replace(fixed, bm25=Bm25Parameters(k1=2))
    with pytest.raises(IndexesError, match="are set by its build"):
        writer.commit(bm25=Bm25Parameters(k1=1))
