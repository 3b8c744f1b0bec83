"""Text and vector retrievers on a cluster, with the same results as the embedded ones.

Texts become terms in this process, by the same analysis as in the embedded BM25. The server ranks documents by these
terms, and its top documents are rescored here. So moving an index to a cluster changes no ranking, in any language,
and the server needs no plugin.
"""

import dataclasses
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from indexes.arrays import check_k, normalised, padding
from indexes.cluster.asking import hits_of
from indexes.cluster.index import ClusterIndex
from indexes.cluster.mapping import field_name
from indexes.cluster.paging import BATCH, WINDOW, PagedSearch, Query
from indexes.cluster.rescoring import Rescoring, Statistics, StatisticsCache
from indexes.cluster.rows import Numbers
from indexes.cluster.sending import vector_kind
from indexes.interface import Filter, IndexesError, Matrix, RowArray, ScoreArray, check_vectors
from indexes.store.records import Manifest
from indexes.text.analysis import Analysis
from indexes.text.field_scoring import b_of
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from indexes.text.scoring import lucene_idf

# A server limits the clauses of a query according to its memory, but always accepts this many.
LONGEST_QUERY = 1000
PAGE = 1000  # candidates per query whose terms are read in one request
AT_ONCE = 10_000  # maximum number of candidates in a request, over all its queries
EXACT_BELOW = 10_000  # up to this many documents, every vector is compared
COMPARED = 1_000_000  # maximum number of comparisons in a request with several queries


class ClusterText(PagedSearch):
    """TextSearch on a server: the documents that the server ranks first, rescored by the embedded BM25.

    Removed documents do not count in the statistics, whereas a directory counts them until it is compacted. Of
    `parameters`, k1 and b are fixed when the index is created; k3 may differ per query. Candidates come from the
    LONGEST_QUERY most frequent terms of a query. Raises IndexesError if the language is unknown.
    """

    def __init__(
        self, index: ClusterIndex, numbers: Numbers, analysis: AnalysisSettings, parameters: Bm25Parameters
    ) -> None:
        super().__init__(index, numbers)
        self._analysis, self._parameters = Analysis(analysis), parameters
        self.statistics = StatisticsCache(index)
        # statistics by the numbers of the fields that are searched
        self._by_fields: dict[tuple[int, ...], StatisticsCache] = {(): self.statistics}

    def search_rows(
        self, queries: Sequence[str], k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k], padded with −1 and −inf.

        Raises BackendUnavailableError if the server does not answer, IndexesError if k is below 1 or `bm25` has a
        different k1 or b from the index.
        """
        check_k(k)
        parameters = self._supported(bm25 or self._parameters)
        rows, scores = padding(len(queries), k)
        counts = [self._analysis.query_terms(text) for text in queries]
        answerable = [q for q, terms in enumerate(counts) if terms]
        if answerable and (width := self._numbers.width(k)):
            clauses, fields = self.clauses(where), self._field_numbers(parameters)
            candidates = {q: Rescoring(counts[q], width, parameters, fields) for q in answerable}
            # the scores of fields are bounded by the statistics at hand
            terms = dict.fromkeys(term for q in answerable for term in counts[q]) if fields else ()
            known = self._statistics(fields).of(list(terms)) if fields else None
            text_queries = {q: text_query(counts[q], parameters, clauses, fields, known) for q in answerable}
            while pending := [q for q in answerable if not candidates[q].complete]:
                step = max(1, min(BATCH, AT_ONCE // max(candidates[q].size(PAGE) for q in pending)))
                for start in range(0, len(pending), step):
                    part = pending[start : start + step]
                    self._extend([candidates[q] for q in part], [text_queries[q] for q in part], fields)
            for q in answerable:
                candidates[q].into(rows[q], scores[q])
        return rows, scores

    def _extend(
        self, candidates: Sequence[Rescoring], queries: Sequence[Query], fields: tuple[int, ...]
    ) -> None:
        sizes = [one.size(PAGE) for one in candidates]
        stored = [field_name(number) for number in fields] or ["terms"]
        bodies = [
            self._page(query, size, one.after) | {"stored_fields": stored}
            for query, size, one in zip(queries, sizes, candidates, strict=True)
        ]
        terms = list(dict.fromkeys(term for one in candidates for term in one.counts))
        answers, statistics = self._statistics(fields).search(bodies, terms)
        for one, size, hits in zip(candidates, sizes, answers, strict=True):
            one.add(hits, size, self._numbers.of([hit["sort"] for hit in hits]), statistics)

    def _statistics(self, fields: tuple[int, ...]) -> StatisticsCache:
        return self._by_fields.setdefault(fields, StatisticsCache(self.index, fields))

    def _supported(self, parameters: Bm25Parameters) -> Bm25Parameters:
        """Return the parameters, without fields of weight 0, if the server supports them. Raises IndexesError."""
        own = self._parameters
        if (parameters.k1, parameters.b) != (own.k1, own.b):
            raise IndexesError(
                f"the index on {self.index.settings.product} has k1 = {own.k1:g} and b = {own.b:g}, which a query "
                "cannot change: build it again with `k1` and `b`, or give `k3` alone"
            )
        active = tuple(field for field in own.of_query(parameters).fields if field.weight)
        fixed = {field.name: b_of(own, field) for field in own.fields}
        if changed := [field.name for field in active if b_of(parameters, field) != fixed[field.name]]:
            raise IndexesError(
                f"the index on {self.index.settings.product} has b = {fixed[changed[0]]:g} for {changed[0]}, which a "
                "query cannot change: build it again with another b, or give weights alone"
            )
        return dataclasses.replace(parameters, fields=active)

    def _field_numbers(self, parameters: Bm25Parameters) -> tuple[int, ...]:
        names = [field.name for field in self._parameters.fields]
        return tuple(names.index(field.name) for field in parameters.fields)


def text_query(
    counts: Counter[str],
    parameters: Bm25Parameters,
    clauses: list[dict[str, Any]],
    fields: Sequence[int] = (),
    statistics: Statistics | None = None,
) -> Query:
    """Return the query that sums the BM25 scores of the terms, each times its weight in the query.

    With `fields` (their numbers) and the `statistics` in them, each score is an upper bound of BM25F's.
    """
    terms: defaultdict[int, list[str]] = defaultdict(list)
    for term, count in counts.most_common(LONGEST_QUERY):
        terms[count].append(term)
    different = np.array(list(terms), dtype=np.float64)
    weights = parameters.query_weights(different, np.full(len(different), float(counts.total()))).tolist()
    weighted = [*zip(weights, terms.values(), strict=True)]
    if statistics:
        should = _in_fields(weighted, parameters, fields, statistics)
    else:
        should = [{"match": {"terms": {"query": " ".join(t), "boost": w}}} for w, t in weighted]
    if len(should) == 1 and not clauses:
        return should[0]
    return {"bool": {"should": should, "filter": clauses, "minimum_should_match": 1}}


def _in_fields(
    weighted: Sequence[tuple[float, Sequence[str]]],
    parameters: Bm25Parameters,
    fields: Sequence[int],
    statistics: Statistics,
) -> list[Query]:
    """Return a clause for each of the terms, which are `weighted`, that bounds its BM25F score from above.

    The server sums idf(t, field) · s(x) over the fields, where s(x) = x / (k1 + x), and x is the count of t, discounted
    by the length, so that x ≥ l, the value of one t in the field's longest text. The boost replaces its idf by that of
    all fields, and s(x) by a bound of s(w x): for a weight w > 1, s(w x) / s(x) falls with x, so it is greatest at l.
    Of several fields, the best one counts in full, the others by a share: for x ≥ y, s(x + y) ≤ s(x) + k1 / (k1 + 2 x)
    s(y), and x is at least the second smallest w l.
    """
    total, k1 = statistics.total, parameters.k1
    weights = np.array([field.weight for field in parameters.fields])
    b = np.array([b_of(parameters, field) for field in parameters.fields])
    least = 1 / (1 - b + b * np.maximum(total.longest, 1) / total.averages)
    factors = np.where(weights > 1, weights * (k1 + least) / (k1 + weights * least), 1.0)
    share = k1 / (k1 + 2 * np.sort(weights * least)[:2].max())
    names = [field_name(number) for number in fields]
    queries: list[Query] = []
    for weight, terms in weighted:
        # each count is of another moment
        numbers = np.minimum([statistics.frequencies[term] for term in terms], total.number)
        idf = lucene_idf(numbers, total.number)
        boosts = weight * factors * idf[:, :1] / idf[:, 1:]
        for term, row in zip(terms, boosts.tolist(), strict=True):
            ranked = [
                {"term": {name: {"value": term, "boost": x}}} for name, x in zip(names, row, strict=True)
            ]
            queries.append({"dis_max": {"queries": ranked, "tie_breaker": share}})
    return queries


class ClusterVectors(PagedSearch):
    """RowSearch on a server: exact by a script, or approximate by HNSW over float32 or int8 vectors.

    `kind` is "flat", "hnsw" or "int8_hnsw". The approximate kinds compare every vector up to `exact_below` documents
    (by default EXACT_BELOW), or if the graph returns too few. Each shard yields `breadth` candidates, one of the
    `settings`. Scores are the same as in "flat".
    """

    GRID: ClassVar[Sequence[Mapping[str, float]]] = tuple({"breadth": 25.0 * 2**n} for n in range(9))
    clock: Callable[[], float] = staticmethod(time.perf_counter)  # the servers' CPU time is not known here

    def __init__(
        self,
        index: ClusterIndex,
        numbers: Numbers,
        dim: int,
        kind: str = "flat",
        *,
        exact_below: int | None = None,
        settings: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(index, numbers)
        self._kind, self._dim = kind, dim
        self._exact_below = EXACT_BELOW if exact_below is None else exact_below
        self.settings = {"breadth": 400.0, **(settings or {})}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def generator(self) -> Self | None:
        """The settings and their GRID; None if every search is exact."""
        return self if self._kind != "flat" and len(self) > self._exact_below else None

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and cosines (float32), both [n, k], padded with −1 and −inf.

        `queries` is float32 [n, dim]. Raises IndexesError if k is below 1, BadVectorError if `queries` is invalid,
        BackendUnavailableError if the server does not answer.
        """
        check_k(k)
        queries = normalised(check_vectors(queries, self._dim))
        rows, scores = padding(len(queries), k)
        n = self._numbers.width(k)
        if not n or not len(queries):
            return rows, scores
        clauses = self.clauses(where)
        if self.generator is None or n > WINDOW // 2:
            top = self._exact(queries, n, clauses)
        else:
            top = self._approximate(queries, n, clauses)
        rows[:, :n], scores[:, :n] = top
        return rows, scores

    def search_exactly(self, queries: Matrix, k: int) -> tuple[RowArray, ScoreArray]:
        """Return the exact rows and scores, both [n, k], for `queries` [n, dim]. Raises the errors of `search_rows`."""
        return self._exact(normalised(check_vectors(queries, self._dim)), k, [])

    def draw(self, size: int, seed: int) -> tuple[Matrix, RowArray]:
        """Return the vectors (float32 [n, dim]) and the rows (int64 [n]) of at most `size` random documents."""
        order = self._numbers.order[1:]
        field = next(iter(order[0]))
        query = {"function_score": {"random_score": {"seed": seed, "field": field}}}
        (answer,) = self.index.msearch([self._page(query, min(size, WINDOW), None)])
        found = [hit["sort"] for hit in hits_of(answer)]
        rows = self._numbers.of(found)
        keys = [str(hit[-1]) for hit, row in zip(found, rows.tolist(), strict=True) if row >= 0]
        return self.index.vectors(keys, self._dim), rows[rows >= 0]

    def _exact(self, queries: Matrix, k: int, clauses: list[dict[str, Any]]) -> tuple[RowArray, ScoreArray]:
        matching = {"bool": {"filter": clauses}} if clauses else {"match_all": {}}
        at_once = max(1, min(BATCH, COMPARED // max(1, len(self))))
        return self._score(queries, k, [matching] * len(queries), at_once)

    def _approximate(
        self, queries: Matrix, k: int, clauses: list[dict[str, Any]]
    ) -> tuple[RowArray, ScoreArray]:
        breadth = min(max(int(self.settings["breadth"]), 2 * k), WINDOW)
        near = self.index.dialect.near
        rows, scores = self._score(queries, k, [near(q.tolist(), breadth, clauses) for q in queries])
        short = np.flatnonzero(rows[:, -1] < 0)
        if len(short):
            rows[short], scores[short] = self._exact(queries[short], k, clauses)
        return rows, scores

    def _score(
        self, queries: Matrix, k: int, candidates: Sequence[Query], at_once: int = BATCH
    ) -> tuple[RowArray, ScoreArray]:
        """Return the top k rows and cosines, both [n, k], among the matches of each query's `candidates` clause."""
        dialect = self.index.dialect
        rows, scores = self._top(
            [
                {"script_score": {"query": clause, "script": dialect.score(q.tolist())}}
                for q, clause in zip(queries, candidates, strict=True)
            ],
            k,
            at_once,
        )
        return rows, dialect.cosines(scores)


def retrievers(
    index: ClusterIndex, manifest: Manifest, numbers: Numbers
) -> tuple[ClusterText, ClusterVectors | None]:
    """Return the text retriever and, if the vectors are on the server, the dense one; nothing is sent yet."""
    dim, kind = vector_kind(manifest)
    text = ClusterText(index, numbers, manifest.analysis, manifest.bm25)
    settings = manifest.search.get("vectors")
    return text, ClusterVectors(index, numbers, dim, kind, settings=settings) if dim else None
