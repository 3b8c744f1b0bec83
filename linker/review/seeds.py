"""Which of a topic's seeds to show beside a document."""

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
        if not len(self._index):
            return self._first
        (hits,) = self._index.search([text], 1)
        return hits.ids[0] if hits.ids else self._first
