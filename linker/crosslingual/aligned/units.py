"""Pages split into lines or sentences, the units that are aligned and exported."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

from indexes.errors import importing
from linker.base.logs import logger

Unit = Literal["sentence", "line"]


def unit_or_default(unit: Unit | None) -> Unit:
    """Return the unit to align: as requested, else sentences if their splitter is installed, else lines."""
    if unit or find_spec("sentencex"):
        return unit or "sentence"
    logger.info("lines are aligned: install the extra 'crosslingual' to align sentences")
    return "line"


def cut(text: str, code: str, unit: Unit) -> list[str]:
    """Return the lines or sentences of a text, stripped, without blank ones. Raises MissingExtraError."""
    lines = (line.strip() for line in text.splitlines())
    if unit == "line":
        return [line for line in lines if line]
    segment = segmenter()
    return [part.strip() for line in lines if line for part in segment(code, line) if part.strip()]


@cache
def segmenter() -> Callable[[str, str], list[str]]:
    """Return the function (language code, text) → sentences. Raises MissingExtraError."""
    with importing("Finding sentences (by sentencex)", "crosslingual"):
        split: Callable[[str, str], list[str]] = import_module("sentencex").segment  # sentencex has no types
    return split
