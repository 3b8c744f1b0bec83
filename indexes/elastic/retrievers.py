"""Elasticsearch as a text side and as a vector side: the same answers as the embedded ones, from a server.

Texts become terms here, by the same analysis as the embedded BM25, and the server ranks terms: moving an index
to Elasticsearch changes no ranking, in any language, and the server needs no plugin. Its scores are Lucene's,
which leave out BM25's constant factor k1 + 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from indexes.arrays import check_k, normalised, padding
from indexes.elastic.mapping import meta_term, stored_vectors
from indexes.elastic.server_index import ElasticStore, as_rows
from indexes.interface import (
    Filter,
    Hits,
    IndexesError,
    Mask,
    Matrix,
    Metadata,
    RowArray,
    ScoreArray,
    check_vectors,
)
from indexes.rows import Rows
from indexes.text.analysis import Analysis, encodable

BATCH = 256  # searches in one request
WINDOW = 10_000  # hits a search may return at once (the server's own limit)
# A server refuses more clauses than its memory allows, in no case fewer than this many.
LONGEST_QUERY = 1000
EXACT_BELOW = 10_000  # documents up to which every vector is compared
DOT = "Math.max(0.0, dotProduct(params.q, 'vector') + 1.0)"  # a score must not be negative

Query = Mapping[str, Any]


class _Side:
    """Rows shared with the other side, changes that wait for `commit`, and reading page by page."""

    def __init__(self, store: ElasticStore, rows: Rows | None = None) -> None:
        self.store = store
        self._rows = Rows() if rows is None else rows
        self._removed: list[RowArray] = []
        self._dirty = False

    def __len__(self) -> int:
        return len(self._rows)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing; the server follows at `settle`. Raises UnknownIdError."""
        self._removed.append(self._rows.remove(ids))

    def commit(self) -> None:
        """Wait until every addition is acknowledged and visible."""
        if self._dirty:
            self.store.flush()
            self._dirty = False

    def settle(self) -> None:
        """Remove on the server what was removed here; until then searches leave it out themselves."""
        if not self._removed:
            return
        for rows in self._removed:
            self.store.delete(rows)
        self.store.flush()
        self._removed.clear()

    def ping(self) -> None:
        """Return if the server would answer a search. Raises BackendUnavailableError, IndexesError."""
        self.store.ping()

    def close(self) -> None:
        """Stop threads and close connections."""
        self.store.close()

    def _restored(self) -> Self:
        """Number the rows as the server has them; what is missing in between was removed."""
        ids: list[str] = []
        dead: list[int] = []
        for row, source in self.store.rows():
            dead.extend(range(len(ids), row))
            ids.extend([""] * (row - len(ids)))
            ids.append(source["id"])
        self._rows.restore(ids, np.array(dead, dtype=np.int64))
        return self

    def _alive(self, rows: RowArray) -> Mask:
        """Say which rows of an answer are documents here: the server may be ahead, or behind with removals."""
        known: Mask = rows < len(self._rows.ids)
        mask = self._rows.mask()
        if mask is not None:
            known[known] &= mask[rows[known]]
        return known

    def _top(self, queries: Sequence[Query], k: int) -> tuple[RowArray, ScoreArray]:
        """Return the k best of each query; it goes on reading where hits are left out or k exceeds a page."""
        rows, scores = padding(len(queries), k)
        filled = np.zeros(len(queries), dtype=np.int64)
        after: dict[int, list[float] | None] = dict.fromkeys(range(len(queries)))
        while after:
            going_on: dict[int, list[float] | None] = {}
            places = list(after)
            for start in range(0, len(places), BATCH):
                part = places[start : start + BATCH]
                sizes = [min(k - int(filled[p]), WINDOW) for p in part]
                bodies = [_page(queries[p], size, after[p]) for p, size in zip(part, sizes, strict=True)]
                for place, size, hits in zip(part, sizes, self.store.msearch(bodies), strict=True):
                    found, values = as_rows(hits)
                    alive = self._alive(found)
                    n, new = int(filled[place]), int(alive.sum())
                    rows[place, n : n + new], scores[place, n : n + new] = found[alive], values[alive]
                    filled[place] += new
                    if len(hits) == size and n + new < k:
                        going_on[place] = hits[-1]
            after = going_on
        return rows, scores


def _page(query: Query, size: int, after: list[float] | None) -> dict[str, Any]:
    body = {
        "query": query,
        "size": size,
        "sort": [{"_score": "desc"}, {"row": "asc"}],
        "stored_fields": "_none_",
        "track_total_hits": False,
    }
    return body | {"search_after": after} if after else body


def conditions(where: Filter | None) -> list[dict[str, Any]]:
    """Return a filter as clauses that all must match."""
    if where is None:
        return []
    return [{"terms": {"meta": [meta_term(n, v) for v in values]}} for n, values in where.conditions]


class ElasticText(_Side):
    """TextIndex and RowSearch over a server: BM25 with k1 = 1.2, b = .75, as the embedded one but for a factor.

    `vectors` is the kind that the server keeps of vectors that come with texts, None where it keeps none. A query
    of more than LONGEST_QUERY different terms is cut to its most frequent ones. Raises IndexesError for an unknown
    language, BackendUnavailableError when the server does not answer.
    """

    def __init__(
        self,
        store: ElasticStore,
        rows: Rows | None = None,
        language: str = "english",
        vectors: str | None = None,
    ) -> None:
        super().__init__(store, rows)
        self._analysis, self._vectors = Analysis(language), vectors

    @classmethod
    def open(cls, store: ElasticStore, language: str = "english") -> Self:
        """Open an index that holds texts under ids, taking the ids from the server."""
        return cls(store, language=language)._restored()

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        metadata: Sequence[Metadata] | None = None,
        vectors: Matrix | None = None,
    ) -> None:
        """Add a batch, all or nothing, with normalised vectors if the index keeps some.

        Raises DuplicateIdError, BadIdError. Additions are searched after `commit`, which a search does itself.
        """
        if len(texts) != len(ids) or (metadata is not None and len(metadata) != len(ids)):
            raise IndexesError(f"{len(ids)} ids, but {len(texts)} texts or another number of metadata")
        terms = [self.terms(text) for text in texts]
        first = self._rows.append(ids)
        self._dirty = self._dirty or bool(ids)
        fields = None
        if vectors is not None and self._vectors is not None:
            fields = stored_vectors(vectors, self._vectors, first)
        self.store.put(first, ids, terms, fields, metadata)

    def terms(self, text: str) -> str:
        """Return what the server stores for a text: its terms, apart by blanks."""
        return " ".join(self._analysis.analyzer.analyze(encodable(self._analysis.prepare(text))))

    def search(self, texts: Sequence[str], k: int, where: Filter | None = None) -> list[Hits]:
        """Return the best documents of each query, at most k; equal scores come in row order."""
        check_k(k)
        return self._rows.hits(*self.search_rows(texts, min(k, len(self) or 1), where))

    def search_rows(
        self, queries: Sequence[str], k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n, k], filled with −1 and −inf. Raises BackendUnavailableError."""
        check_k(k)
        self.commit()
        self.settle()
        rows, scores = padding(len(queries), k)
        counts = [self._analysis.query_terms(text) for text in queries]
        asked = [place for place, terms in enumerate(counts) if terms and len(self)]
        if asked:
            clauses = conditions(where)
            found = self._top([_text_query(counts[p], clauses) for p in asked], min(k, len(self)))
            rows[asked, : found[0].shape[1]], scores[asked, : found[0].shape[1]] = found
        return rows, scores


def _text_query(counts: Counter[str], clauses: list[dict[str, Any]]) -> Query:
    """Return the sum of the terms' BM25 scores, a term of the query counting as often as it is there."""
    terms: defaultdict[int, list[str]] = defaultdict(list)
    for term, count in counts.most_common(LONGEST_QUERY):
        terms[count].append(term)
    should = [{"match": {"terms": {"query": " ".join(t), "boost": c}}} for c, t in terms.items()]
    if len(should) == 1 and not clauses:
        return should[0]
    return {"bool": {"should": should, "filter": clauses, "minimum_should_match": 1}}


class ElasticVectors(_Side):
    """VectorIndex and RowSearch over a server: exact by a script, or what HNSW with float32 or int8 vectors proposes.

    `kind` is "flat", "hnsw" or "int8_hnsw"; an approximate search compares everything up to `exact_below`
    documents, and where the graph finds too few. Each shard proposes `breadth` documents. Scores are those of "flat".
    """

    def __init__(
        self,
        store: ElasticStore,
        dim: int,
        kind: str = "flat",
        rows: Rows | None = None,
        *,
        exact_below: int = EXACT_BELOW,
        breadth: int = 400,
    ) -> None:
        super().__init__(store, rows)
        self.kind, self._dim, self._exact_below, self._breadth = kind, dim, exact_below, breadth

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self._dim

    def add(self, ids: Sequence[str], vectors: Matrix, metadata: Sequence[Metadata] | None = None) -> None:
        """Add a batch, all or nothing. Raises DuplicateIdError, BadIdError, BadVectorError."""
        vectors = normalised(check_vectors(vectors, self._dim, ids))
        if metadata is not None and len(metadata) != len(ids):
            raise ValueError(f"{len(ids)} ids but {len(metadata)} metadata")
        first = self._rows.append(ids)
        self._dirty = self._dirty or bool(ids)
        self.store.put(first, ids, vectors=stored_vectors(vectors, self.kind, first), metadata=metadata)

    def search(self, vectors: Matrix, k: int, where: Filter | None = None) -> list[Hits]:
        """Return the best min(k, matching) documents of each query; equal scores come in row order."""
        check_k(k)
        return self._rows.hits(*self.search_rows(vectors, min(k, len(self) or 1), where))

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores (cosines), both [n, k], filled with −1 and −inf."""
        check_k(k)
        queries = normalised(check_vectors(queries, self._dim))
        self.commit()
        self.settle()
        rows, scores = padding(len(queries), k)
        n = min(k, len(self))
        if not len(self) or not len(queries):
            return rows, scores
        clauses = conditions(where)
        if self.kind == "flat" or len(self) <= self._exact_below or n > WINDOW // 2:
            found = self._exact(queries, n, clauses)
        else:
            found = self._approximate(queries, n, clauses)
        rows[:, :n], scores[:, :n] = found
        return rows, scores

    def _exact(self, queries: Matrix, k: int, clauses: list[dict[str, Any]]) -> tuple[RowArray, ScoreArray]:
        every = {"bool": {"filter": clauses}} if clauses else {"match_all": {}}
        return self._scored(queries, k, [every] * len(queries))

    def _approximate(
        self, queries: Matrix, k: int, clauses: list[dict[str, Any]]
    ) -> tuple[RowArray, ScoreArray]:
        breadth = min(max(self._breadth, 2 * k), WINDOW)
        graph = {"field": "near", "k": breadth, "num_candidates": breadth, "filter": clauses}
        rows, scores = self._scored(
            queries, k, [{"knn": {**graph, "query_vector": q.tolist()}} for q in queries]
        )
        short = np.flatnonzero(rows[:, -1] < 0)
        if len(short):
            rows[short], scores[short] = self._exact(queries[short], k, clauses)
        return rows, scores

    def _scored(self, queries: Matrix, k: int, candidates: Sequence[Query]) -> tuple[RowArray, ScoreArray]:
        """Return the k best of each query's candidates by their cosine."""
        rows, scores = self._top(
            [
                {"script_score": {"query": among, "script": {"source": DOT, "params": {"q": q.tolist()}}}}
                for q, among in zip(queries, candidates, strict=True)
            ],
            k,
        )
        return rows, scores - 1
