"""Measured numbers enter the pages only through templates: numbers typed into the prose are detected here."""

import re
import tomllib
from pathlib import Path

import pytest

from benchmarks.report.readme import MARKED, PAGES
from benchmarks.report.values import INLINE, VALUES, value
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
