"""Runs side by side, and runs from dicts and frames."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from linker.base.errors import InputError
from linker.evaluation import evaluate, read_run, write_run
from linker.evaluation.comparison import compare
from linker.evaluation.plot import plot_differences
from linker.evaluation.significance import holm, paired_t, randomisation

QRELS = {f"q{t}": {"a": 1} for t in range(40)}


def run_with(ranks: list[int], tmp_path: Path, name: str) -> Path:
    """Write a run whose relevant document has the given rank, topic by topic; 0: no hits for the topic."""
    rows = []
    for t, rank in enumerate(ranks):
        if rank:
            ids = [f"x{i}" for i in range(4)]
            ids.insert(rank - 1, "a")
            rows.append((f"q{t}", ids, -np.arange(5.0)))
    write_run(tmp_path / name, rows, name)
    return tmp_path / name


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    good, bad = rng.integers(1, 3, 40).tolist(), rng.integers(1, 6, 40).tolist()
    return [run_with(good, tmp_path, "good"), run_with(bad[:30] + [0] * 10, tmp_path, "b_d&")]


def test_compare_puts_the_pieces_together(runs: list[Path]) -> None:
    c = compare(QRELS, runs, "recip_rank success.1", samples=500, seed=3)
    base, other = c.rows[:2]
    mine, theirs = (evaluate(QRELS, r, "recip_rank").per_topic["recip_rank"] for r in reversed(runs))
    assert (base.run, base.difference, base.p) == ("good", None, None)
    assert other.difference == pytest.approx(mine.mean() - theirs.mean())
    assert other.p == randomisation(mine, theirs, samples=500, seed=3)
    assert (other.wins, other.ties, other.losses) == (
        (mine > theirs).sum(), (mine == theirs).sum(), (mine < theirs).sum()
    )  # fmt: skip
    assert (other.low or 0) < mine.mean() - theirs.mean() < (other.high or 0)
    ps = [r.p for r in c.rows if r.p is not None]
    assert [r.p_holm for r in c.rows if r.p is not None] == holm(ps)
    assert c.num_topics == 40 and "30 of 40 judged topics answered" in "\n".join(c.remarks())
    t = compare(QRELS, runs, "recip_rank", test="t", complete=False)
    both = c.evaluations["b_d&"].answered
    assert t.num_topics == 30 and t.rows[1].p == paired_t(mine[both], theirs[both]).p


def test_the_baseline_may_be_one_of_the_runs_or_another(runs: list[Path]) -> None:
    assert compare(QRELS, runs, "map", baseline=runs[1]).baseline == "b_d&"
    assert [r.run for r in compare(QRELS, runs[:1], "map", baseline=str(runs[1])).rows] == ["b_d&", "good"]


def test_tables(runs: list[Path]) -> None:
    c = compare(QRELS, runs, "map", samples=100)
    head = c.text().splitlines()[0]
    assert " ".join(head.split()) == "run measure mean difference 95% interval p p (Holm) wins/ties/losses"
    assert c.markdown().splitlines()[1].startswith("| ----") and c.markdown().count("|") == 9 * 4
    latex = c.latex()
    assert r"b\_d\& & map &" in latex and latex.count(r"\\") == 3 and latex.endswith("\\end{tabular}\n")
    assert "<td>b_d&amp;</td>" in c._repr_html_()
    assert json.loads(json.dumps(c.to_dict()))["rows"][1]["losses"] == c.rows[1].losses


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plots(runs: list[Path], tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plot{suffix}"
    plot_differences(compare(QRELS, runs, "map", samples=100), path)
    assert path.read_bytes()[:5] == (b"\x89PNG\r" if suffix == ".png" else b"<?xml")
    with pytest.raises(InputError, match=r"\.png or \.svg"):
        plot_differences(compare(QRELS, runs, "map", samples=100), tmp_path / "plot.pdf")


def test_no_room_leaves_the_old_picture(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "plot.svg"
    path.write_text("the old one", encoding="utf-8")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        plot_differences(compare(QRELS, runs, "map", samples=100), path)
    assert path.read_text(encoding="utf-8") == "the old one"


def test_what_cannot_be_compared(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two runs"):
        compare(QRELS, runs[:1])
    with pytest.raises(InputError, match="topic by topic"):
        compare(QRELS, runs, "gm_map")
    with pytest.raises(InputError, match="given twice"):
        compare(QRELS, [runs[0], runs[0]])
    a, b = run_with([1, 0], tmp_path, "first"), run_with([0, 1], tmp_path, "second")
    with pytest.raises(InputError, match="no topic that all runs answer"):
        compare(QRELS, [a, b], complete=False)


def frames(kind: str, run: dict[str, dict[str, float]], columns: tuple[str, str, str]) -> Any:
    rows = [(t, d, v) for t in run for d, v in run[t].items()]
    data = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    return pd.DataFrame(data) if kind == "pandas" else pl.DataFrame(data)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_equal_files(runs: list[Path], kind: str) -> None:
    run = {t: dict(d) for t, d in read_run(runs[0]).items()}
    expected = dict(evaluate(QRELS, runs[0], "official"))
    q = frames(kind, {t: {"a": 1} for t in QRELS}, ("query_id", "doc_id", "relevance"))
    assert dict(evaluate(q, frames(kind, run, ("qid", "docno", "score")), "official")) == expected
    assert dict(evaluate(QRELS, run, "official")) == expected
    assert dict(evaluate(QRELS, read_run(runs[0]), "official")) == expected


def test_integer_ids_are_ids_and_other_numbers_are_refused() -> None:
    big = 2**53 + 1
    whole: Any = {big: {7: 1}}
    assert evaluate(whole, {str(big): {"7": 1.0}}, "map")["map"] == 1
    broken: Any = {"q": {7.0: 1}}
    with pytest.raises(InputError, match="lose digits"):
        evaluate(broken, {"q": {"7": 1.0}})


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ({}, {"q": {"a": 1}}, "qrels: it is empty"),
        ({"q": {"a": 1}}, {}, "run: it is empty"),
        ({"q": {"a": 1}}, {"q": {}}, "run: it is empty"),
        ({"q": {"a": 1}}, {"q": {"a": float("nan")}}, "nan of document 'a' is not a score"),
        ({"q": {"a": 1.5}}, {"q": {"a": 1}}, "1.5 of document 'a' is not an integer"),
        ({"q": {"a": "x"}}, {"q": {"a": 1}}, "could not convert"),
        ({"q": {"": 1}}, {"q": {"a": 1}}, "empty"),
        ({"q": 1}, {"q": {"a": 1}}, "expected a mapping"),
        (5, {"q": {"a": 1}}, "cannot read a int"),
        ({"q": {"a": 1}}, pd.DataFrame({"qid": ["q"], "score": [1]}), "no document column"),
        (
            {"q": {"a": 1}},
            pd.DataFrame({"qid": ["q"] * 2, "doc_id": ["a"] * 2, "score": [1, 2]}),
            "occurs twice",
        ),
    ],
)
def test_bad_values(qrels: Any, run: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(qrels, run)
