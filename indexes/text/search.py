"""The interface that hybrid search needs from a text retriever, wherever it runs."""

from collections.abc import Sequence
from typing import Protocol

from indexes.interface import Filter, RowArray, ScoreArray
from indexes.text.parameters import Bm25Parameters


class TextSearch(Protocol):
    """A RowSearch over texts, whose BM25 parameters may differ per query."""

    def search_rows(
        self, queries: Sequence[str], k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n, k], best first, padded with −1 and −inf.

        `bm25` replaces the index's own parameters. Raises IndexesError if k is below 1, or if the backend cannot
        change a parameter per query.
        """
        ...
