"""The base of both retrievers: reads results page by page, and turns metadata filters into clauses."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from indexes.arrays import padding
from indexes.cluster.asking import hits_of
from indexes.cluster.index import ClusterIndex
from indexes.cluster.mapping import meta_term, range_clause
from indexes.cluster.phrases import PhraseFilter, RowPhraseFilter
from indexes.cluster.rows import Numbers
from indexes.interface import Condition, Filter, RowArray, ScoreArray

BATCH = 256  # searches in one request
WINDOW = 10_000  # hits a search may return at once (the server's own limit)

Query = Mapping[str, Any]


class PagedSearch:
    """Base class of the retrievers for texts and vectors: reads results page by page; `numbers` maps hits to rows."""

    def __init__(self, index: ClusterIndex, numbers: Numbers) -> None:
        self.index, self._numbers = index, numbers

    def numbered_by(self, numbers: Numbers) -> Self:
        """Return the same retriever with different row numbers."""
        other = copy.copy(self)
        other._numbers = numbers
        return other

    def ping(self) -> None:
        """Check that the server would answer a search. Raises BackendUnavailableError or IndexesError if not."""
        self.index.ping()

    def clauses(self, where: Filter | None) -> list[dict[str, Any]]:
        """Return a filter as clauses, all of which must match."""
        phrases = where.phrases if isinstance(where, PhraseFilter | RowPhraseFilter) else ()
        clauses = [_clause(condition) for condition in (where.all if where else ())]
        return [*clauses, *({"match_phrase": {"terms": phrase}} for phrase in phrases)]

    def matching(self, where: Filter) -> RowArray:
        """Return the rows, int64 [n], of documents that pass a filter. Raises the errors of `ClusterIndex.msearch`."""
        rows, _ = self._top(
            [{"bool": {"filter": self.clauses(where)}}], self._numbers.width(len(self._numbers))
        )
        return rows[rows >= 0]

    def _top(self, queries: Sequence[Query], k: int, at_once: int = BATCH) -> tuple[RowArray, ScoreArray]:
        """Return the top k rows and scores of each query, both [n, k], reading further pages as needed.

        A request has at most `at_once` queries, since it has a time limit.
        """
        rows, scores = padding(len(queries), k)
        filled = np.zeros(len(queries), dtype=np.int64)
        after: dict[int, list[Any] | None] = dict.fromkeys(range(len(queries)))
        while after:
            unfinished: dict[int, list[Any] | None] = {}
            numbers = list(after)
            for start in range(0, len(numbers), at_once):
                part = numbers[start : start + at_once]
                sizes = [min(k - int(filled[q]), WINDOW) for q in part]
                bodies = [self._page(queries[q], size, after[q]) for q, size in zip(part, sizes, strict=True)]
                for q, size, answer in zip(part, sizes, self.index.msearch(bodies), strict=True):
                    hits = [hit["sort"] for hit in hits_of(answer)]
                    found = self._numbers.of(hits)
                    alive, n = found >= 0, int(filled[q])
                    new = int(alive.sum())
                    hit_scores = np.fromiter((hit[0] for hit in hits), dtype=np.float32, count=len(hits))
                    rows[q, n : n + new], scores[q, n : n + new] = found[alive], hit_scores[alive]
                    filled[q] += new
                    if len(hits) == size and n + new < k:
                        unfinished[q] = hits[-1]
            after = unfinished
        return rows, scores

    def _page(self, query: Query, size: int, after: Sequence[Any] | None) -> dict[str, Any]:
        body = {
            "query": query,
            "size": size,
            "sort": self._numbers.order,
            "stored_fields": "_none_",
            "track_total_hits": False,
        }
        return body | {"search_after": after} if after else body


def _clause(condition: Condition) -> dict[str, Any]:
    if condition.is_range:
        return range_clause(condition)
    clause = {"terms": {"meta": [meta_term(condition.field, value) for value in condition.values]}}
    return {"bool": {"must_not": [clause]}} if condition.sign == "!=" else clause
