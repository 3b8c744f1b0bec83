"""The tables of published systems: the published figures above linker's measurements."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report.cells import lines
from benchmarks.report.figures import Law
from benchmarks.report.readme import TABLES
from linker.papers.reproduce.frame import row, table
from tests.helpers import ROOT

RECORDS = sorted((ROOT / "benchmarks/results").glob("published_*.json"))


def test_the_page_shows_tables_as_the_command_does() -> None:
    rows = [
        row("CNN", {"mAP": 0.4981}, {"mAP": [0.25, 0.35]}, "other data"),
        row("AST", {}, {"mAP": 0.5}) | {"recorded": "Z80, commit abc"},
    ]
    results = {"tables": [table("Table 2", ["mAP"], rows, "fewer links")]}
    assert list(lines(TABLES["published_star"], results)) == [
        "**Table 2**",
        "",
        "|  |  | mAP | why they differ |",
        "|---|---|---|---|",
        "| CNN | published | 0.498 |  |",
        "|  | here (2 seeds) | 0.300 ± .071 | other data |",
        "| AST | here | 0.500 |  |",
        "",
        "Why they differ: fewer links.",
        "",
        "Recorded earlier (Z80, commit abc): AST.",
        "",
    ]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_figure_has_its_column_and_every_table_its_reasons(path: Path) -> None:
    tables: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["results"]["tables"]
    assert tables
    for each in tables:
        assert each["why"] or all(found["why"] or not found["here"] for found in each["rows"])
        for found in each["rows"]:
            assert {*found["published"], *found["here"]} <= set(each["measures"])
            assert found["here"] or found["why"] or found["published"]


def test_a_law_is_that_of_its_points() -> None:
    tokens = [256, 512, 1024, 4096]
    law = Law.fit(tokens, [3e-4 * n**1.5 for n in tokens])
    assert (law.a, law.b, law.explained) == pytest.approx((3e-4, 1.5, 1))
    assert str(law) == "9.49 · (n / 1,000)^1.50"
    rough = Law.fit(tokens, [1, 5, 2, 9])
    assert 0 < rough.explained < 0.9


def test_the_case_study_has_a_row_per_article() -> None:
    row = {"posts": 9, "linked": 2, "accepted": 3, "right": 1, "until": {"1": 1.0}, "first": [1, 0], "words": ["a"],
           "words of posts": ["b", "c"], "most similar": [{"cosine": 0.812, "linked": 1, "words": ["b"]}],
           "least similar": [{"cosine": -0.1, "linked": 0, "words": ["d", "e"]}]}  # fmt: skip
    found = list(lines(TABLES["case_study"], {"accepted": 0.7, "rows": [row]}))
    assert "| `a` | `b`, `c` | 2 of 9 | 3, 1 | 1 | ●○ |" in found
    assert found[-1] == "| `a` | ● 0.81 `b` | ○ -0.10 `d`, `e` |"
