"""Which of a topic's seeds to show next to a document."""

from __future__ import annotations

from collections.abc import Sequence

from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import AnalysisSettings
from linker.review.interface import Seed


class Nearest:
    """Which seed of a topic a document resembles most, by BM25: the one to show beside it."""

    def __init__(self, seeds: Sequence[Seed], analysis: AnalysisSettings) -> None:
        self._first = seeds[0].id if seeds else ""
        self._index = Bm25Index(analysis)
        if len(seeds) > 1:
            self._index.add([seed.id for seed in seeds], [seed.full_text for seed in seeds])

    def of(self, text: str) -> str:
        """Return the seed's id; the first one's where no seed shares a word with the text."""
        return next(iter(self.likeliest(text, 1)), self._first)

    def likeliest(self, text: str, count: int) -> tuple[str, ...]:
        """Return the ids of the seeds that a text resembles most, best first, of those that share a word with it."""
        if not len(self._index):
            return (self._first,) if self._first else ()
        (hits,) = self._index.search([text], count)
        return tuple(hits.ids)
