"""Text and vector retrievers on Elasticsearch, with the same answers as the embedded ones.

Texts become terms here, by the same analysis as in the embedded BM25, and the server ranks terms: moving an index
to Elasticsearch changes no ranking, in any language, and the server needs no plugin. Its scores are Lucene's,
which omit BM25's constant factor k1 + 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from indexes.arrays import check_k, normalised, padding
from indexes.elastic.mapping import meta_term, range_clause, stored_vectors
from indexes.elastic.server_index import ElasticStore, as_rows
from indexes.interface import (
    Condition,
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
from indexes.text.analysis import Analysis
from indexes.text.parameters import AnalysisSettings, Bm25Parameters

BATCH = 256  # searches in one request
WINDOW = 10_000  # hits a search may return at once (the server's own limit)
# A server limits the clauses of a query by its memory, but always accepts this many.
LONGEST_QUERY = 1000
EXACT_BELOW = 10_000  # up to this many documents every vector is compared

Query = Mapping[str, Any]


class _Retriever:
    """What both retrievers share: rows, changes that wait for `commit`, and reading answers page by page."""

    _order: Sequence[Mapping[str, str]] = ({"_score": "desc"}, {"row": "asc"})

    def __init__(self, store: ElasticStore, rows: Rows | None = None) -> None:
        self.store = store
        self._rows = Rows() if rows is None else rows
        self._removed: list[RowArray] = []
        self._dirty = False

    def __len__(self) -> int:
        return len(self._rows)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing; the server follows at `settle`. Raises UnknownIdError for an unknown id."""
        self._removed.append(self._rows.remove(ids))

    def commit(self) -> None:
        """Wait until every addition is acknowledged and visible. Raises BackendUnavailableError or IndexesError."""
        if self._dirty:
            self.store.flush()
            self._dirty = False

    def settle(self) -> None:
        """Delete the removed rows on the server; until then, searches skip them. Raises BackendUnavailableError."""
        if not self._removed:
            return
        for rows in self._removed:
            self.store.delete(rows)
        self.store.flush()
        self._removed.clear()

    def ping(self) -> None:
        """Return if the server would answer a search. Raises BackendUnavailableError or IndexesError if not."""
        self.store.ping()

    def close(self) -> None:
        """Stop the threads and close the connections."""
        self.store.close()

    def _restored(self) -> Self:
        """Read the ids and their rows from the server; rows that are missing in between were removed."""
        ids: list[str] = []
        dead: list[int] = []
        for row, source in self.store.rows():
            dead.extend(range(len(ids), row))
            ids.extend([""] * (row - len(ids)))
            ids.append(source["id"])
        self._rows.restore(ids, np.array(dead, dtype=np.int64))
        return self

    def _width(self, k: int) -> int:
        """Return how many documents an answer can have, at most k."""
        return min(k, len(self))

    def _numbered(self, hits: Sequence[Sequence[Any]]) -> tuple[RowArray, ScoreArray]:
        """Return the rows and scores, both [n], of one search's n sort values."""
        return as_rows(hits)

    def _alive(self, rows: RowArray) -> Mask:
        """Return which `rows` [n] are live here, bool [n]: the server may have newer rows, or removed ones."""
        known: Mask = rows < len(self._rows.ids)
        mask = self._rows.mask()
        if mask is not None:
            known[known] &= mask[rows[known]]
        return known

    def clauses(self, where: Filter | None) -> list[dict[str, Any]]:
        """Return a filter as clauses, all of which must match. Raises IndexesError for a range on an old index."""
        conditions = where.all if where else ()
        if any(condition.is_range for condition in conditions) and not self.store.ordered(again=True):
            raise IndexesError(
                f"{self.store.settings.index} was made by an earlier version, which cannot compare numbers and dates: "
                "fill it again with `linker index rebuild`"
            )
        return [_clause(condition) for condition in conditions]

    def _top(self, queries: Sequence[Query], k: int) -> tuple[RowArray, ScoreArray]:
        """Return the top k rows and scores of each query, both [n, k].

        Further pages are read where hits were skipped or k exceeds a page.
        """
        rows, scores = padding(len(queries), k)
        filled = np.zeros(len(queries), dtype=np.int64)
        after: dict[int, list[Any] | None] = dict.fromkeys(range(len(queries)))
        while after:
            unfinished: dict[int, list[Any] | None] = {}
            numbers = list(after)
            for start in range(0, len(numbers), BATCH):
                part = numbers[start : start + BATCH]
                sizes = [min(k - int(filled[q]), WINDOW) for q in part]
                bodies = [self._page(queries[q], size, after[q]) for q, size in zip(part, sizes, strict=True)]
                for q, size, hits in zip(part, sizes, self.store.msearch(bodies), strict=True):
                    hit_rows, hit_scores = self._numbered(hits)
                    alive = self._alive(hit_rows)
                    n, new = int(filled[q]), int(alive.sum())
                    rows[q, n : n + new], scores[q, n : n + new] = hit_rows[alive], hit_scores[alive]
                    filled[q] += new
                    if len(hits) == size and n + new < k:
                        unfinished[q] = hits[-1]
            after = unfinished
        return rows, scores

    def _page(self, query: Query, size: int, after: list[Any] | None) -> dict[str, Any]:
        body = {
            "query": query,
            "size": size,
            "sort": self._order,
            "stored_fields": "_none_",
            "track_total_hits": False,
        }
        return body | {"search_after": after} if after else body


def _clause(condition: Condition) -> dict[str, Any]:
    """Return a condition of a filter as a clause."""
    if condition.is_range:
        return range_clause(condition)
    clause = {"terms": {"meta": [meta_term(condition.field, value) for value in condition.values]}}
    return {"bool": {"must_not": [clause]}} if condition.sign == "!=" else clause


class ElasticText(_Retriever):
    """TextIndex and TextSearch on a server: BM25 like the embedded one, except for a factor and rounded lengths.

    `vectors` is the kind in which the server stores the vectors that come with texts; None stores none. Of
    `parameters`, the server keeps k1 and b as they were when the index was created; k3 may differ per query. A query of
    more than LONGEST_QUERY different terms is cut to its most frequent ones. Raises IndexesError where the language
    is unknown, BackendUnavailableError where the server does not answer.
    """

    def __init__(
        self,
        store: ElasticStore,
        rows: Rows | None = None,
        analysis: str | AnalysisSettings = "english",
        vectors: str | None = None,
        parameters: Bm25Parameters | None = None,
    ) -> None:
        super().__init__(store, rows)
        self._analysis, self._vectors = Analysis(analysis), vectors
        self._parameters = parameters or Bm25Parameters()

    @classmethod
    def open(
        cls,
        store: ElasticStore,
        analysis: str | AnalysisSettings = "english",
        parameters: Bm25Parameters | None = None,
    ) -> Self:
        """Open an existing index, with the ids from the server. Raises BackendUnavailableError."""
        return cls(store, analysis=analysis, parameters=parameters)._restored()

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        metadata: Sequence[Metadata] | None = None,
        vectors: Matrix | None = None,
    ) -> None:
        """Add a batch, all or nothing; `vectors`, float32 [n, dim] and normalised, are stored if the index keeps some.

        Additions can be found after `commit`, which every search calls. Raises DuplicateIdError or BadIdError where
        an id is invalid, IndexesError where the lengths differ.
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
        """Return the terms of a text, separated by blanks, as the server stores them."""
        return " ".join(self._analysis.terms(self._analysis.prepare(text)))

    def search(
        self,
        texts: Sequence[str],
        k: int,
        where: Filter | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> list[Hits]:
        """Return the top k documents per query, or fewer; equal scores come in row order.

        Raises what `search_rows` raises.
        """
        check_k(k)
        return self._rows.hits(*self.search_rows(texts, min(k, len(self) or 1), where, bm25))

    def search_rows(
        self,
        queries: Sequence[str],
        k: int,
        where: Filter | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k], filled with −1 and −inf.

        Raises BackendUnavailableError where the server does not answer, IndexesError where k is below 1 or `bm25` has
        another k1 or b than the index.
        """
        check_k(k)
        parameters = self._checked(bm25 or self._parameters)
        self.commit()
        self.settle()
        rows, scores = padding(len(queries), k)
        counts = [self._analysis.query_terms(text) for text in queries]
        answerable = [q for q, terms in enumerate(counts) if terms]
        if answerable and (width := self._width(k)):
            clauses = self.clauses(where)
            top = self._top([_text_query(counts[q], parameters, clauses) for q in answerable], width)
            rows[answerable, :width], scores[answerable, :width] = top
        return rows, scores

    def _checked(self, parameters: Bm25Parameters) -> Bm25Parameters:
        """Return the parameters if the server can answer by them. Raises IndexesError."""
        own = self._parameters
        if parameters.fields:
            raise IndexesError(
                f"an index on {self.store.settings.product} has no fields: build one in a directory alone"
            )
        if (parameters.k1, parameters.b) != (own.k1, own.b):
            raise IndexesError(
                f"the index on {self.store.settings.product} has k1 = {own.k1:g} and b = {own.b:g}, which a query "
                "cannot change: build it again with --k1 and --b, or give --k3 alone"
            )
        return parameters


def _text_query(counts: Counter[str], parameters: Bm25Parameters, clauses: list[dict[str, Any]]) -> Query:
    """Return the query that sums the BM25 scores of the terms, each times its weight in the query."""
    terms: defaultdict[int, list[str]] = defaultdict(list)
    for term, count in counts.most_common(LONGEST_QUERY):
        terms[count].append(term)
    different = np.array(list(terms), dtype=np.float64)
    weights = parameters.query_weights(different, np.full(len(different), float(counts.total()))).tolist()
    should = [
        {"match": {"terms": {"query": " ".join(t), "boost": w}}}
        for w, t in zip(weights, terms.values(), strict=True)
    ]
    if len(should) == 1 and not clauses:
        return should[0]
    return {"bool": {"should": should, "filter": clauses, "minimum_should_match": 1}}


class ElasticVectors(_Retriever):
    """VectorIndex and RowSearch on a server: exact by a script, or approximate by HNSW over float32 or int8 vectors.

    `kind` is "flat", "hnsw" or "int8_hnsw". The approximate kinds compare every vector up to `exact_below` documents
    and where the graph returns too few. Each shard proposes `breadth` candidates. Scores are those of "flat".
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
        """The dimension of the vectors."""
        return self._dim

    def add(self, ids: Sequence[str], vectors: Matrix, metadata: Sequence[Metadata] | None = None) -> None:
        """Add a batch of `vectors`, float32 [n, dim], all or nothing.

        Raises DuplicateIdError, BadIdError or BadVectorError where the batch is invalid, ValueError where the
        number of metadata differs from that of the ids.
        """
        vectors = normalised(check_vectors(vectors, self._dim, ids))
        if metadata is not None and len(metadata) != len(ids):
            raise ValueError(f"{len(ids)} ids but {len(metadata)} metadata")
        first = self._rows.append(ids)
        self._dirty = self._dirty or bool(ids)
        self.store.put(first, ids, vectors=stored_vectors(vectors, self.kind, first), metadata=metadata)

    def search(self, vectors: Matrix, k: int, where: Filter | None = None) -> list[Hits]:
        """Return the min(k, matching) best documents per query; equal scores come in row order.

        `vectors` is float32 [n, dim]. Raises what `search_rows` raises.
        """
        check_k(k)
        return self._rows.hits(*self.search_rows(vectors, min(k, len(self) or 1), where))

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and cosines (float32), both [n, k], filled with −1 and −inf.

        `queries` is float32 [n, dim]. Raises IndexesError where k is below 1, BadVectorError where they are invalid,
        BackendUnavailableError where the server does not answer.
        """
        check_k(k)
        queries = normalised(check_vectors(queries, self._dim))
        self.commit()
        self.settle()
        rows, scores = padding(len(queries), k)
        n = self._width(k)
        if not n or not len(queries):
            return rows, scores
        clauses = self.clauses(where)
        if self.kind == "flat" or len(self) <= self._exact_below or n > WINDOW // 2:
            top = self._exact(queries, n, clauses)
        else:
            top = self._approximate(queries, n, clauses)
        rows[:, :n], scores[:, :n] = top
        return rows, scores

    def _exact(self, queries: Matrix, k: int, clauses: list[dict[str, Any]]) -> tuple[RowArray, ScoreArray]:
        matching = {"bool": {"filter": clauses}} if clauses else {"match_all": {}}
        return self._scored(queries, k, [matching] * len(queries))

    def _approximate(
        self, queries: Matrix, k: int, clauses: list[dict[str, Any]]
    ) -> tuple[RowArray, ScoreArray]:
        breadth = min(max(self._breadth, 2 * k), WINDOW)
        near = self.store.dialect.near
        rows, scores = self._scored(queries, k, [near(q.tolist(), breadth, clauses) for q in queries])
        short = np.flatnonzero(rows[:, -1] < 0)
        if len(short):
            rows[short], scores[short] = self._exact(queries[short], k, clauses)
        return rows, scores

    def _scored(self, queries: Matrix, k: int, candidates: Sequence[Query]) -> tuple[RowArray, ScoreArray]:
        """Return the top k rows and cosines, both [n, k], among the matches of each query's `candidates` clause."""
        dialect = self.store.dialect
        rows, scores = self._top(
            [
                {"script_score": {"query": clause, "script": dialect.score(q.tolist())}}
                for q, clause in zip(queries, candidates, strict=True)
            ],
            k,
        )
        return rows, dialect.cosines(scores)
