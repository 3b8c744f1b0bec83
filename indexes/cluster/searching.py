"""Searches over an index that is only on a cluster: each search numbers the documents that it finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from indexes.cluster.breaker import Breaker
from indexes.cluster.index import ClusterIndex
from indexes.cluster.retrievers import ClusterText, ClusterVectors
from indexes.cluster.rows import ByStamp, HitRows
from indexes.fusion import Ranking
from indexes.hybrid import Answer, Embed, HybridIndex, Mode, SearchSettings
from indexes.interface import BackendUnavailableError, Filter, RowArray, ScoreArray
from indexes.text.parameters import Bm25Parameters


class Guard:
    """A RowSearch behind a circuit breaker, which it may share with copies that use other row numbers."""

    def __init__(self, retriever: ClusterText | ClusterVectors, breaker: Breaker | None = None) -> None:
        self.retriever, self.breaker = retriever, breaker or Breaker(retriever)

    def search_rows(
        self, queries: Any, k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k]. Raises the same errors as `Breaker.search_rows`."""
        retriever: Any = self.retriever
        parameters = {} if bm25 is None else {"bm25": bm25}
        found: tuple[RowArray, ScoreArray] = self.breaker.run(
            lambda: retriever.search_rows(queries, k, where, **parameters)
        )
        return found

    def into(self, rows: HitRows) -> Guard:
        """Return a copy of this retriever that numbers documents by `rows`."""
        copy = self.retriever.numbered_by(ByStamp(rows.number, self.retriever.index.about))
        return Guard(copy, self.breaker)


class _OneSearch(HybridIndex):
    """Fuses both retrievers' results in one search; documents with equal scores come in the order of their stamps."""

    rows: HitRows

    def _ask(
        self, retrievers: Any, depth: int
    ) -> tuple[dict[str, Ranking], dict[str, BackendUnavailableError]]:
        rankings, failures = super()._ask(retrievers, depth)
        rank = np.append(self.rows.sort(), -1)  # row −1, the padding of short answers, maps to itself
        return {name: (rank[rows], scores) for name, (rows, scores) in rankings.items()}, failures


class RemoteHybrid(HybridIndex):
    """Fuses two retrievers over an index on a cluster; each search numbers the documents that it finds.

    `text` and `vectors`, if queried directly, number documents by the rows of all documents.
    """

    def __init__(
        self, index: ClusterIndex, vectors: Guard | None, text: Guard, settings: SearchSettings
    ) -> None:
        super().__init__(HitRows(index.count), vectors, text, settings, at_once=True)
        self._index, self._retrievers = index, (vectors, text)

    def __len__(self) -> int:
        return self._index.count()

    def meeting(self) -> HybridIndex:
        """Return a HybridIndex for one search, or for several whose row numbers must agree."""
        rows = HitRows(self._index.count)
        vectors, text = (retriever and retriever.into(rows) for retriever in self._retrievers)
        return _OneSearch(rows, vectors, text, self.settings, at_once=True)

    def search(
        self,
        texts: Sequence[str],
        k: int,
        *,
        embed: Embed | None = None,
        mode: Mode | None = None,
        where: Filter | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> Answer:
        """Return the top k documents for each text. Raises the same errors as `HybridIndex.search`."""
        return self.meeting().search(texts, k, embed=embed, mode=mode, where=where, bm25=bm25)
