"""`linker index tune` on judged queries: several files, the report, JSON, warnings and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import linker

TEXTS = {
    "a": "rain floods the river",
    "b": "parliament votes on tax",
    "c": "the river bank",
    "d": "a match won late",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": i, "text": text}) + "\n" for i, text in TEXTS.items()]
    (tmp_path / "news.jsonl").write_text("".join(lines))
    (tmp_path / "dev.tsv").write_text("q1\triver floods\nq2\tparliament tax\n")
    (tmp_path / "train.tsv").write_text("q2\tparliament tax\nq3\tlate match\n")
    (tmp_path / "dev.qrels").write_text("q1 0 a 1\nq2 0 b 1\nq1 0 a 1\n")
    (tmp_path / "train.qrels").write_text("q3 0 d 1\nq2 0 b 1\n")
    linker("index", "build", tmp_path / "news.jsonl", "--out", tmp_path / "index")
    return tmp_path


def both(folder: Path) -> list[str]:
    queries = [f"--queries={folder / name}" for name in ("dev.tsv", "train.tsv")]
    return queries + [f"--qrels={folder / name}" for name in ("dev.qrels", "train.qrels")]


def test_all_files_count_and_repeats_are_named(folder: Path) -> None:
    done = linker("index", "tune", folder / "index", *both(folder), "--json")
    result = json.loads(done.stdout)
    assert result["queries"] == 3
    assert result["chosen"] == result["default"] == {
        "mode": "bm25", "fusion": None, "bm25": None, "mrr": 1, "success@1": 1, "success@5": 1, "map": 1,
    }  # fmt: skip
    assert result["reason"].startswith(
        "bm25 is the only retriever of the index, and no other parameters of BM25"
    )
    assert f"warning: {folder}/dev.qrels:3: repeats the judgement in {folder}/dev.qrels:1" in done.stderr
    assert f"warning: {folder}/train.qrels:2: repeats the judgement in {folder}/dev.qrels:2" in done.stderr


def test_the_report_shows_default_and_choice(folder: Path) -> None:
    done = linker("index", "tune", folder / "index", *both(folder))
    assert "bm25 alone" in done.stdout and "default chosen" in done.stdout
    assert done.stdout.endswith("chosen: bm25 alone\n")
    assert "only retriever" in done.stderr


def test_what_contradicts_is_refused(folder: Path) -> None:
    (folder / "train.qrels").write_text("q2 0 b 0\n")
    error = linker("index", "tune", folder / "index", *both(folder), check=1).stderr
    assert "train.qrels:1" in error and "dev.qrels:2" in error and "delete the line that is wrong" in error
    (folder / "train.qrels").write_text("q3 0 d 1\n")
    (folder / "train.tsv").write_text("q2\tanother text\n")
    error = linker("index", "tune", folder / "index", *both(folder), check=1).stderr
    assert f"the query 'q2' has one text in {folder}/dev.tsv and another one in {folder}/train.tsv" in error
    assert "give --queries and --qrels" in linker("index", "tune", folder / "index", check=2).stderr
