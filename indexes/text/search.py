"""What a hybrid needs of a retriever for texts, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from indexes.interface import Filter, RowArray, ScoreArray
from indexes.text.parameters import Bm25Parameters


class TextSearch(Protocol):
    """A RowSearch over texts, whose parameters of BM25 may differ per query."""

    def search_rows(
        self, queries: Sequence[str], k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n, k], best first, padded with −1 and −inf.

        `bm25` replaces the index's own parameters. Raises IndexesError if k is below 1, or where the backend cannot
        change a parameter per query.
        """
        ...
