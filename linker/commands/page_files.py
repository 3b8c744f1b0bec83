"""Pages and dictionaries of files that users name, with remarks on what was read and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linker.corpora import BadLine
from linker.crosslingual.lexicon.dictionaries import Dictionary, read_dictionary
from linker.crosslingual.pages.pages import Pages, read_pages
from linker.logs import logger


def pages_of(path: str | Path, code: str | None) -> Pages:
    """Read the pages of a file or folder. Raises InputError as `read_pages` does."""
    pages = read_pages(Path(path), code)
    logger.info("%s: %s pages, language %s", path, f"{len(pages):,}", pages.language.code)
    _report(pages.skipped)
    return pages


def dictionary_of(path: str | Path) -> Dictionary:
    """Read a dictionary. Raises InputError as `read_dictionary` does."""
    dictionary = read_dictionary(Path(path))
    logger.info("%s: %s pairs, read as %s", path, f"{len(dictionary.pairs):,}", dictionary.format)
    _report(dictionary.skipped)
    return dictionary


def _report(skipped: Sequence[BadLine]) -> None:
    if skipped:
        first = skipped[0]
        logger.info(
            f"{first.path}: {len(skipped):,} unusable entries left out; the first is line {first.line}: {first.reason}"
        )
