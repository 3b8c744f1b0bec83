"""Text and vector retrievers over an index on a cluster: the server's ids and stamps take the place of rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from indexes.elastic.breaker import Breaker
from indexes.elastic.retrievers import ElasticText, ElasticVectors
from indexes.elastic.server_index import ElasticStore
from indexes.fusion import Ranking
from indexes.hybrid import Answer, Embed, HybridIndex, Mode, SearchSettings
from indexes.interface import (
    BackendUnavailableError,
    Filter,
    Mask,
    RowArray,
    ScoreArray,
)
from indexes.remote.rows import RemoteRows, Seen
from indexes.remote.store import RemoteStore
from indexes.rows import Rows
from indexes.text.parameters import Bm25Parameters

ORDER = ({"_score": "desc"}, {"stamp": "asc"}, {"id": "asc"})


class _Remote:
    """What the two retrievers add to those with a directory: how hits are numbered."""

    _order: Sequence[Mapping[str, str]] = ORDER
    store: ElasticStore
    _rows: Rows

    def into(self, rows: Rows) -> Self:
        """Return the same retriever, which numbers documents by `rows`."""
        other = copy.copy(self)
        other._rows = rows
        return other

    def __len__(self) -> int:
        assert isinstance(self.store, RemoteStore)
        return self.store.about()

    def _width(self, k: int) -> int:
        return k  # the documents are not counted for each search

    def _numbered(self, hits: Sequence[Sequence[Any]]) -> tuple[RowArray, ScoreArray]:
        scores = np.fromiter((hit[0] for hit in hits), dtype=np.float32, count=len(hits))
        ids = [hit[2] for hit in hits]
        if isinstance(self._rows, Seen):
            return self._rows.number(ids, [hit[1] for hit in hits]), scores
        return self._rows.find(ids), scores

    def _alive(self, rows: RowArray) -> Mask:
        return rows >= 0  # of documents that are newer than the rows there are none


class RemoteText(_Remote, ElasticText):
    """BM25 on a cluster; see ElasticText."""


class RemoteVectors(_Remote, ElasticVectors):
    """Vectors on a cluster; see ElasticVectors."""


class Guarded:
    """RowSearch by a retriever behind a circuit breaker, numbered by `rows`."""

    def __init__(self, breaker: Breaker, side: RemoteText | RemoteVectors, rows: Rows) -> None:
        self.breaker, self.side, self._rows = breaker, side, rows

    def search_rows(
        self, queries: Any, k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k]. Raises as `Breaker.search_rows`."""
        side: Any = self.side.into(self._rows)
        parameters = {} if bm25 is None else {"bm25": bm25}
        found: tuple[RowArray, ScoreArray] = self.breaker.run(
            lambda: side.search_rows(queries, k, where, **parameters)
        )
        return found

    def into(self, rows: Rows) -> Guarded:
        """Return the same retriever, which numbers documents by `rows`."""
        return Guarded(self.breaker, self.side, rows)


def guarded(side: RemoteText | RemoteVectors, rows: Rows) -> Guarded:
    """Return a retriever behind a circuit breaker of its own."""
    return Guarded(Breaker(side), side, rows)


class _OneSearch(HybridIndex):
    """Fuses the answers to one search, in which documents of equal scores come in the order of their stamps."""

    rows: Seen

    def _ask(
        self, retrievers: Any, depth: int
    ) -> tuple[dict[str, Ranking], dict[str, BackendUnavailableError]]:
        rankings, failures = super()._ask(retrievers, depth)
        rank = np.append(self.rows.sort(), -1)  # −1, which fills short answers, stays itself
        return {name: (rank[rows], scores) for name, (rows, scores) in rankings.items()}, failures


class RemoteHybrid(HybridIndex):
    """Fuses two retrievers over an index on a cluster; each search numbers the documents that it meets.

    `text` and `vectors`, asked directly, number documents by the `rows` of the index.
    """

    def __init__(
        self,
        rows: RemoteRows,
        vectors: Guarded | None,
        text: Guarded,
        settings: SearchSettings,
    ) -> None:
        super().__init__(rows, vectors, text, settings)
        self._sides = vectors, text

    def meeting(self) -> HybridIndex:
        """Return the retrievers for one search, or for several whose rows are compared."""
        seen = Seen(self.rows.__len__)
        vectors, text = (side and side.into(seen) for side in self._sides)
        return _OneSearch(seen, vectors, text, self.settings)

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
        """Return the top k documents for each text. Raises as `HybridIndex.search`."""
        return self.meeting().search(texts, k, embed=embed, mode=mode, where=where, bm25=bm25)
