"""Pages and dictionaries from files named by users; the log says how many records were read and left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linker.base.logs import logger
from linker.corpora import BadLine
from linker.corpora.dictionaries import Dictionary, read_dictionary
from linker.crosslingual.pages.pages import Pages, read_pages


def pages_of(path: str | Path, code: str | None) -> Pages:
    """Read the pages of a file or folder. Raises the same InputErrors as `read_pages`."""
    pages = read_pages(Path(path), code)
    logger.info("%s: %s pages, language %s", path, f"{len(pages):,}", pages.language.code)
    report_skipped(pages.skipped)
    return pages


def dictionary_of(path: str | Path) -> Dictionary:
    """Read a dictionary. Raises the same InputErrors as `read_dictionary`."""
    dictionary = read_dictionary(Path(path))
    logger.info("%s: %s pairs, read as %s", path, f"{len(dictionary.pairs):,}", dictionary.format)
    report_skipped(dictionary.skipped)
    return dictionary


def report_skipped(skipped: Sequence[BadLine]) -> None:
    """Log how many records were left out, and the first of them."""
    if skipped:
        first = skipped[0]
        logger.info(
            f"{first.path}: {len(skipped):,} unusable entries left out; the first is line {first.line}: {first.reason}"
        )
