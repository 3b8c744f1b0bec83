"""Measured numbers enter the pages only through templates; the tables of published systems are those of the records."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report.cells import lines
from benchmarks.report.figures import Law
from benchmarks.report.readme import MARKED, PAGES, TABLES, sources
from benchmarks.report.values import INLINE, VALUES, value
from linker.papers.reproduce.frame import row, table
from tests.helpers import ROOT

# Numbers that define something, such as a default, a version or a published figure, by page: each phrase must be there.
DEFINED = tomllib.loads((ROOT / "tests/site/defined_numbers.toml").read_text(encoding="utf-8"))
NOT_PROSE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|^ {4}[^\n]*$", re.DOTALL | re.MULTILINE)
WORDS = "two|three|four|five|six|seven|eight|nine|ten|twenty"
CLAIM = re.compile(
    r"(?<![\w.,/‑-])[+−-]?\d*\.\d+(?![\w.]*\d)"  # 0.86, .86
    r"|\b\d[\d,.]*\s(?:ms|µs|MiB|GiB|kB|MB|GB|CPU-\w+|(?:queries|documents)\sper)\b"
    rf"|\b(?:\d[\d,.]*|{WORDS})\s(?:times|×)\s(?:as|faster|slower|the|that|more|less)\b"
)


def prose(text: str) -> str:
    """Return the handwritten text in one line: without rendered tables and values, code, and link targets."""
    return " ".join(NOT_PROSE.sub("", INLINE.sub("", MARKED.sub("", text))).split())


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_no_measured_number_is_written_by_hand(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    text = prose(page.read_text(encoding="utf-8"))
    for phrase in DEFINED.get(name, []):
        assert phrase in text, f"{name} no longer says {phrase!r}: take it out of defined_numbers.toml"
        text = text.replace(phrase, "")
    assert not [found.group() for found in CLAIM.finditer(text)], (
        f"{name}: render it, or say in defined_numbers.toml"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_line_begins_with_an_inline_value(page: Path) -> None:
    """A comment at the start of a line would end the paragraph (CommonMark, HTML block 2)."""
    assert not re.search(r"^<!-- =", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", VALUES)
def test_every_value_is_a_number_and_used(name: str) -> None:
    assert re.fullmatch(r"[+-]?[\d,]+(\.\d+)?", value(name))
    assert any(f"<!-- ={name} -->" in page.read_text(encoding="utf-8") for page in PAGES)


def test_what_is_a_claim() -> None:
    claims = (
        "an MRR of 0.86",
        "gains .02",
        "takes 12 ms",
        "three times as fast",
        "5,000 queries per CPU-second",
        "4 × the time",
    )
    for text in claims:
        assert CLAIM.search(text), text
    for text in ("in 2021-01-31", "the 10 best", "three times", "docs/0002-certified", "95 % interval"):
        assert not CLAIM.search(text), text


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
        "These rows were recorded earlier (Z80, commit abc): “AST”.",
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


def test_a_table_names_the_runs_that_its_own_numbers_come_from() -> None:
    """A file may hold parts of several runs: without this, all tables would name the machine of the last."""
    machine = {"cpu": "Z80", "cores": 2}
    content = {
        "command": "last", "commit": "abcdefgh", "machine": machine,
        "parts": {"tweets": "first run", "pages": "second run", "arriving-10": "third run", "cost": "fourth run"},
    }  # fmt: skip
    assert sources("groups", content) == sources("groups.best", content) == ["first run", "second run"]
    assert sources("groups.arriving", content) == ["third run"] and sources("groups.cost", content) == [
        "fourth run"
    ]
    assert sources("bm25", content | {"parts": {}}) == ["*last*, Z80, 2 cores, commit abcdefg"]


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
