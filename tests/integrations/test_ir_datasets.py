"""Data sets of ir_datasets by their ids, if they are on this disk, and BEIR folders by their paths."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import ir_datasets
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import JsonlDocs, TrecQrels, TsvQueries
from ir_datasets.util import Cache, LocalDownload, RequestsDownload
from typer.testing import CliRunner

from linker import Engine
from linker.base.errors import InputError
from linker.cli import app
from linker.corpora import read_corpus, read_queries
from linker.evaluation import evaluate
from linker.evaluation.formats import load_qrels
from tests.helpers import write_json_lines


class Doc(NamedTuple):
    doc_id: str
    title: str
    text: str
    lang: str

    def default_text(self) -> str:
        return f"{self.title} {self.text}"


DOCS = [("a", "A", "floods in Valencia", "en"), ("b", "", "un nouveau parlement", "fr"), ("c", "", "", "en")]


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[str]:
    docs = [dict(zip(Doc._fields, doc, strict=True)) for doc in DOCS]
    write_json_lines(tmp_path / "docs.jsonl", docs)
    (tmp_path / "queries.tsv").write_text("q1\tflood Valencia\nq2\tparlement\n")
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 b 2\n")
    made = Dataset(
        JsonlDocs(LocalDownload(tmp_path / "docs.jsonl"), Doc, docstore_path=str(tmp_path / "store")),
        TsvQueries(LocalDownload(tmp_path / "queries.tsv")),
        TrecQrels(LocalDownload(tmp_path / "qrels"), {}),
    )
    name = f"linker-test/{tmp_path.name}"
    ir_datasets.registry.register(name, made)
    yield f"ir_datasets:{name}"
    del ir_datasets.registry._registered[name]


def test_a_data_set_is_corpus_queries_and_judgements(dataset: str, tmp_path: Path) -> None:
    index, run = tmp_path / "index", tmp_path / "run.json"
    built = CliRunner().invoke(app, ["index", "build", dataset, "--out", str(index)])
    assert "2 documents added" in built.stdout and "1 record could not be used" in built.stderr, built.output
    document = Engine.open(index).document("a")
    assert (document.title, document.text, document.metadata) == ("A", "floods in Valencia", {"lang": "en"})
    CliRunner().invoke(app, ["search", str(index), "--queries", dataset, "--out", str(run)])
    assert evaluate(dataset, run, "MRR")["MRR"] == 1
    assert {t: dict(d) for t, d in load_qrels(dataset).items()} == {"q1": {"a": 1}, "q2": {"b": 2}}
    assert [(q.id, q.text) for q in read_queries(Path(dataset))] == [
        ("q1", "flood Valencia"),
        ("q2", "parlement"),
    ]


def test_nothing_is_downloaded(tmp_path: Path) -> None:
    missing = Cache(RequestsDownload("http://127.0.0.1:9/nothing"), tmp_path / "absent.jsonl")
    ir_datasets.registry.register("linker-test/absent", Dataset(JsonlDocs(missing, Doc)))
    stream = RequestsDownload.stream
    try:
        with pytest.raises(
            InputError, match="'linker-test/absent' of ir_datasets is not on this disk: fetch it"
        ):
            next(read_corpus(Path("ir_datasets:linker-test/absent")))
    finally:
        del ir_datasets.registry._registered["linker-test/absent"]
    assert RequestsDownload.stream is stream


def test_unknown_names_and_missing_parts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no data set 'nonsense'"):
        load_qrels("ir_datasets:nonsense")
    ir_datasets.registry.register("linker-test/bare", Dataset(TsvQueries(LocalDownload(tmp_path / "q"))))
    try:
        for read in (lambda n: next(read_corpus(Path(n))), load_qrels):
            with pytest.raises(InputError, match=r"has no (documents|judgements)"):
                read("ir_datasets:linker-test/bare")
    finally:
        del ir_datasets.registry._registered["linker-test/bare"]
