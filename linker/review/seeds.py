"""The seeds of a review: texts whose links are sought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import AnalysisSettings


class Seed(Protocol):
    """A text whose links are sought; `document` is its id in the index where it is one of its documents, or empty."""

    @property
    def id(self) -> str:
        """Its name among the seeds."""
        ...

    @property
    def text(self) -> str:
        """Its text, without the title."""
        ...

    @property
    def title(self) -> str:
        """Its title, or an empty text."""
        ...

    @property
    def document(self) -> str | None:
        """The id of the document that it is, if it is one."""
        ...


def full_text(seed: Seed) -> str:
    """Return title and text, joined by a newline if there is a title, as of a document."""
    return f"{seed.title}\n{seed.text}" if seed.title else seed.text


class Nearest:
    """Which seed of a topic a document resembles most, by BM25: the one to show beside it."""

    def __init__(self, seeds: Sequence[Seed], analysis: AnalysisSettings) -> None:
        self._first = seeds[0].id if seeds else ""
        self._index = Bm25Index(analysis)
        if len(seeds) > 1:
            self._index.add([seed.id for seed in seeds], [full_text(seed) for seed in seeds])

    def of(self, text: str) -> str:
        """Return the seed's id; the first one's where no seed shares a word with the text."""
        if not len(self._index):
            return self._first
        (hits,) = self._index.search([text], 1)
        return hits.ids[0] if hits.ids else self._first
