"""`linker index tune` on judged queries: several files, the report, JSON, warnings and errors."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.engine.tuning import MEASURES, find_relevant
from tests.helpers import linker

TEXTS = {
    "a": "rain floods the river", "b": "parliament votes on tax", "c": "the river bank",
    "d": "a match won late",
}  # fmt: skip


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


def padded(lists: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    """Rows [Q, k], filled with −1."""
    rows = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int64)
    for q, answer in enumerate(lists):
        rows[q, : len(answer)] = answer
    return rows


def oracle(answer: Sequence[int], relevant: Sequence[int]) -> dict[str, float]:
    """Every measure of one query, straight from its definition."""
    ranks = [rank for rank, row in enumerate(answer, start=1) if row in set(relevant) - {-1}]
    return {
        "mrr": 1 / ranks[0] if ranks else 0.0,
        "success@1": float(any(r <= 1 for r in ranks)),
        "success@5": float(any(r <= 5 for r in ranks)),
        "map": sum(n / r for n, r in enumerate(ranks, start=1)) / len(relevant) if relevant else 0.0,
    }


judged = st.tuples(
    st.lists(st.integers(0, 15), unique=True, max_size=10),
    st.lists(st.integers(0, 15), unique=True, max_size=4).flatmap(
        lambda rows: st.integers(0, 2).map(lambda missing: rows + [-1] * missing)
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(judged, min_size=1, max_size=6))
def test_measures_equal_their_definitions(queries: list[tuple[list[int], list[int]]]) -> None:
    rows = padded([answer for answer, _ in queries])
    relevant = [wanted for _, wanted in queries]
    found = find_relevant(rows, relevant)
    counts = np.array([len(r) for r in relevant], dtype=np.float64)
    for name, measure in MEASURES.items():
        expected = [oracle(answer, wanted)[name] for answer, wanted in queries]
        assert measure(found, counts).tolist() == pytest.approx(expected, abs=1e-12)


def test_worked_measures() -> None:
    found = find_relevant(np.array([[4, 7, 2, -1], [3, 1, 5, 9], [-1, -1, -1, -1]]), [[7, 2, 8], [9], [-1]])
    counts = np.array([3.0, 1.0, 1.0])
    assert MEASURES["mrr"](found, counts).tolist() == [1 / 2, 1 / 4, 0]
    assert MEASURES["map"](found, counts).tolist() == pytest.approx([(1 / 2 + 2 / 3) / 3, 1 / 4, 0])
    assert MEASURES["success@1"](found, counts).tolist() == [0, 0, 0]
    assert MEASURES["success@5"](found, counts).tolist() == [1, 1, 0]
