"""`linker bucc evaluate`: tables of ranks, mined links and differences, in one and in several languages."""

import json
from pathlib import Path
from typing import Any

import pytest

from linker.papers.bucc.table import evaluate_runs
from tests.helpers import linker


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Ten linked pages in two languages, two pages without a counterpart, and two runs."""
    for code in ("fr", "de"):
        gold = "".join(f"{code}{i} 0 e{i} 1\n" for i in range(10))
        (tmp_path / f"{code}.test.txt").write_text(gold)
    right = {"good": 9, "bad": 5}
    for name, correct in right.items():
        lines = [
            f"{code}{i} X e{i if i < correct else 99} 1 {0.9 - i / 20:.2f} {name}\n"
            for code in ("fr", "de")
            for i in range(12)
        ]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    (tmp_path / "known.txt").write_text("fr10 0 e10 1\nfr11 0 e11 1\nde10 0 e1 1\n")
    return tmp_path


def rows(
    files: Path, *options: str | Path, runs: tuple[str, ...] = ("good", "bad")
) -> dict[tuple[str, str], dict[str, Any]]:
    words = [word for name in runs for word in ("--run", str(files / f"{name}.run"))]
    done = linker(
        "bucc", "evaluate", files / "fr.test.txt", files / "de.test.txt", *words, "--json", *options
    )
    return {(row["language"], row["run"]): row for row in json.loads(done.stdout)}


def test_links_of_pages_without_counterparts_are_false(files: Path) -> None:
    """Pages of the other language are recognised by its own file, or by the prefix of their ids."""
    found = rows(files)
    row = found["fr", "good"]
    assert (row["links"], row["unjudged"]) == (12, 2)
    assert row["precision"] == pytest.approx(9 / 12)
    assert row["recall"] == pytest.approx(9 / 10)
    assert row["f1"] == pytest.approx(18 / 22)
    assert row["intervals"]["f1"][0] < row["f1"] < row["intervals"]["f1"][1]
    assert set(row["intervals"]) == {"recip_rank", "success_1", "success_5", "precision", "recall", "f1"}
    assert rows(files, "--known", files / "known.txt")["fr", "good"]["links"] == 10


def test_thresholds(files: Path) -> None:
    row = rows(files, "--threshold", "0.5")["fr", "good"]
    assert (row["links"], row["threshold"], row["best_threshold"]) == (9, 0.5, False)
    assert row["precision"] == 1
    best = rows(files, "--best-threshold")
    assert (best["fr", "good"]["threshold"], best["fr", "bad"]["threshold"]) == (0.5, 0.7)
    assert best["fr", "good"]["best_threshold"]
    done = linker("bucc", "evaluate", files / "fr.test.txt", "--run", files / "bad.run", "--best-threshold")
    assert "0.7 (oracle)" in done.stdout
    assert "a system cannot know it" in done.stderr
    both = ("--best-threshold", "--threshold", "1")
    refused = linker("bucc", "evaluate", files / "fr.test.txt", "--run", files / "bad.run", *both, check=1)
    assert "exclude each other" in refused.stderr


def test_differences_from_the_first_run_by_the_seed(files: Path) -> None:
    found = rows(files)
    assert found["fr", "good"]["baseline"] is None
    assert found["fr", "good"]["differences"] == []
    row = found["fr", "bad"]
    assert row["baseline"] == "good"
    by_measure = {d["measure"]: d for d in row["differences"]}
    assert set(by_measure) == {"recip_rank", "success_1", "f1"}
    assert by_measure["f1"]["difference"] == pytest.approx((10 - 18) / 22)
    assert by_measure["success_1"]["difference"] == pytest.approx(-0.4)
    for d in by_measure.values():
        assert d["low"] <= d["difference"] <= d["high"] <= 0
        assert d["p"] <= d["p_holm"] <= 3 * d["p"] + 1e-12
    # Two of the 16 ways to exchange four pages.
    assert by_measure["success_1"]["p"] == pytest.approx(1 / 8, abs=0.02)
    assert rows(files) == rows(files, "--seed", "0")
    assert rows(files) != rows(files, "--seed", "1")


def test_the_tables(files: Path) -> None:
    done = linker(
        "bucc", "evaluate", files / "fr.test.txt", "--run", files / "good.run", "--run", files / "bad.run",
        "--known", files / "known.txt",
    )  # fmt: skip
    ranks, links, differences = (table.splitlines() for table in done.stdout.split("\n\n"))
    assert ranks[1].split() == ["fr", "good", "10", "1.000", *["0.900"] * 6]
    assert links[0].split() == [
        "lang",
        "run",
        "precision",
        "recall",
        "F1",
        "95%",
        "interval",
        "links",
        "threshold",
    ]
    # the German pages count as false
    assert links[1].split()[:5] == ["fr", "good", "0.429", "0.900", "0.581"]
    assert [line.split()[0] for line in differences] == ["measure", "MRR", "S@1", "F1"]
    assert "11 of the 21 links of good belong to pages without a gold link" in done.stderr


def test_a_run_is_compared_only_in_its_languages(files: Path) -> None:
    (files / "french.run").write_text("fr1 X e1 1 0.9 french\n")
    found = evaluate_runs(
        [files / "fr.test.txt", files / "de.test.txt"], [files / "bad.run", files / "french.run"]
    )
    assert [(row.language, row.run, row.baseline) for row in found] == [
        ("de", "bad", None), ("fr", "bad", None), ("fr", "french", "bad"),
    ]  # fmt: skip
    assert found[2].precision == 1
    assert found[2].recall == pytest.approx(0.1)


def test_a_run_without_any_answer_scores_zero(files: Path) -> None:
    """A system that finds nothing has a row, as in the task overview, and the others keep theirs."""
    before = rows(files)
    (files / "silent.run").write_text("")
    found = rows(files, runs=("good", "bad", "silent"))
    assert {key: row for key, row in found.items() if key[1] != "silent"} == before
    for code in ("fr", "de"):
        row = found[code, "silent"]
        assert (row["pages"], row["coverage"], row["f1"], row["links"]) == (10, 0, 0, 0)
        assert {*row["complete"].values()} == {0}
    assert "silent" in linker("bucc", "evaluate", files / "fr.test.txt", "--run", files / "silent.run").stdout
