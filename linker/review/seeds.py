"""Choose which of a topic's seeds to show next to a document."""

from __future__ import annotations

from collections.abc import Sequence

from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import AnalysisSettings
from linker.review.interface import Seed


class Nearest:
    """Finds the seed of a topic that a document resembles most, by BM25, to show next to it."""

    def __init__(self, seeds: Sequence[Seed], analysis: AnalysisSettings) -> None:
        self._first = seeds[0].id if seeds else ""
        self._index = Bm25Index(analysis)
        if len(seeds) > 1:
            self._index.add([seed.id for seed in seeds], [seed.full_text for seed in seeds])

    def of(self, text: str) -> str:
        """Return the seed's id; the first seed's if no seed shares a word with the text."""
        return next(iter(self.likeliest(text, 1)), self._first)

    def likeliest(self, text: str, count: int) -> tuple[str, ...]:
        """Return the ids of the most similar seeds that share a word with the text, best first."""
        if not len(self._index):
            return (self._first,) if self._first else ()
        (hits,) = self._index.search([text], count)
        return tuple(hits.ids)
