"""The directory's BM25, applied to the documents that a cluster ranks first.

Lucene rounds lengths down to four significant bits, so its score is an upper bound, and close ranks may swap.
Candidates are rescored here, with exact lengths, counts and statistics, until the bound of the last one shows that no
document below it belongs to the top k.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from indexes.cluster.asking import hits_of
from indexes.cluster.index import ClusterIndex
from indexes.cluster.mapping import field_name, length_name, parts_of, terms_of
from indexes.dtypes import AnyArray, Float32Array, Float64Array, Int64Array
from indexes.interface import Document, RowArray, ScoreArray
from indexes.text.analysis import Analysis
from indexes.text.features import QueryWords
from indexes.text.field_scoring import b_of, common
from indexes.text.forward_index import ForwardIndex, Found
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from indexes.text.postings import LENGTHS, MOST_COUNT
from indexes.text.scoring import weigh
from indexes.text.vocabulary import term_hash

MOST_TERMS = 200_000  # maximum number of terms whose frequencies are cached
COUNTED = 1000  # terms counted in one request
SLACK, TIMES = 5000, 4  # a query has at most TIMES × k + SLACK candidates
ROUNDING = 1e-6  # error of Lucene's scores, which are sums of floats

Hit = Mapping[str, Any]
Body = Mapping[str, Any]


class Total(NamedTuple):
    """The visible documents: their `number`, their `tokens`, and the `last` row or stamp (None without documents).

    `by_field` and `longest`: the tokens in each field, and in the longest text of each, if BM25 has fields.
    """

    number: int = -1
    tokens: int = 0
    last: float | None = None
    by_field: tuple[int, ...] = ()
    longest: tuple[int, ...] = ()

    @property
    def average(self) -> float:
        """The average length, 1 if there are no terms."""
        return self.tokens / max(1, self.number) or 1.0

    @property
    def averages(self) -> list[float]:
        """The average length of each field."""
        return [self._replace(tokens=tokens).average for tokens in self.by_field]


class Statistics(NamedTuple):
    """BM25's statistics of the visible documents: the `total`, and how many have each term, in all and by field."""

    total: Total
    frequencies: dict[str, tuple[int, ...]]


class StatisticsCache:
    """Requests statistics together with searches, and caches them until the documents change.

    The statistics are those of full texts or, with `fields` (their numbers), of several fields together, in which a
    document counts once for each term.
    """

    def __init__(self, index: ClusterIndex, fields: Sequence[int] = ()) -> None:
        self._index, self._known = index, Statistics(Total(), {})
        self._names = [field_name(number) for number in fields] or ["terms"]
        self._lengths = [length_name(number) for number in fields]
        last = {"max": {"field": "stamp" if index.settings.stateless else "row"}}
        sums = {name: {"sum": {"field": name}} for name in self._lengths or ["length"]}
        longest = {f"longest-{name}": {"max": {"field": name}} for name in self._lengths}
        self._total = {"size": 0, "track_total_hits": True, "aggs": {"last": last, **sums, **longest}}

    def search(self, bodies: Sequence[Body], terms: Sequence[str]) -> tuple[list[list[Hit]], Statistics]:
        """Return each search's hits and statistics of at least `terms`. Raises the errors of `Requester.msearch`."""
        missing = [term for term in terms if term not in self._known.frequencies]
        # in several requests, since each has a time limit
        for start in range(COUNTED, len(missing), COUNTED):
            self.search((), missing[start : start + COUNTED])
        known = self._known
        missing = [term for term in terms if term not in known.frequencies]
        first, *answers = self._index.msearch([self._total, *map(self._holders, missing), *bodies])
        counts = dict(zip(missing, map(self._holding, answers), strict=False))
        found = {name: value["value"] for name, value in first["aggregations"].items()}
        tokens = tuple(int(found[name]) for name in self._lengths or ["length"])
        by_field = tokens if self._lengths else ()
        longest = tuple(int(found[f"longest-{name}"] or 0) for name in self._lengths)
        total = Total(_number(first), sum(tokens), found["last"], by_field, longest)
        if total != known.total or len(known.frequencies) > MOST_TERMS:
            known = Statistics(total, {})
            others = [term for term in terms if term not in counts]
            counts |= zip(
                others, map(self._holding, self._index.msearch(list(map(self._holders, others)))), strict=True
            )
        known.frequencies.update(counts)
        self._known = known
        return [hits_of(answer) for answer in answers[len(missing) :]], known

    def of(self, terms: Sequence[str]) -> Statistics:
        """Return the statistics of any number of different terms. Raises the errors of `Requester.msearch`."""
        _, known = self.search((), terms)
        return Statistics(known.total, {term: known.frequencies[term] for term in terms})

    def _holders(self, term: str) -> Body:
        queries = {name: {"term": {name: term}} for name in self._names}
        body = {"size": 0, "track_total_hits": True, "query": {"bool": {"should": [*queries.values()]}}}
        filters = {name: {"filter": query} for name, query in queries.items()}
        return body | ({"aggs": filters} if self._lengths else {})

    def _holding(self, answer: Mapping[str, Any]) -> tuple[int, ...]:
        in_fields = answer.get("aggregations", {})
        return _number(answer), *(in_fields[name]["doc_count"] for name in self._names if self._lengths)


def _number(answer: Mapping[str, Any]) -> int:
    return int(answer["hits"]["total"]["value"])


class Rescoring:
    """The documents that the server ranks first for a query, rescored until the top k are certain.

    `counts` has the count of each term of the query; `fields` are the numbers of the `parameters`' fields, if any.
    """

    def __init__(
        self, counts: Counter[str], k: int, parameters: Bm25Parameters, fields: Sequence[int] = ()
    ) -> None:
        self.counts, self._k, self._parameters, self._fields = counts, k, parameters, fields
        self.after: Sequence[Any] | None = None  # sort values of the last candidate
        self._size = k + k // 2 + 10
        self._most = TIMES * k + SLACK
        self._seen, self._exhausted, self._ratio = 0, False, 1.0
        self._best: list[tuple[float, Sequence[Any], int]] = []  # −score, tie-breaking sort values, row

    def size(self, page: int) -> int:
        """Return how many candidates the next request should return, at most `page`."""
        return min(page, max(self._size, self._seen))

    def add(self, hits: Sequence[Hit], size: int, rows: RowArray, statistics: Statistics) -> None:
        """Score the hits of a request for `size` candidates, whose rows, int64 [hits], are −1 if deleted."""
        self._seen, self._exhausted = self._seen + len(hits), len(hits) < size
        if not hits:
            return
        if self._fields:
            parts = [[parts_of(hit, field_name(n)) for hit in hits] for n in self._fields]
            scores = score_by_fields(self.counts, parts, statistics, self._parameters)
        else:
            texts = [terms_of(hit).split(" ") for hit in hits]
            scores = score(self.counts, texts, statistics, self._parameters)
        bounds = np.array([hit["sort"][0] for hit in hits], dtype=np.float32)
        # Some versions leave out the factor k1 + 1, and all count deleted documents in their statistics.
        ratio = float(np.max(scores / bounds))
        self._ratio = max(
            self._ratio, ratio, self._parameters.k1 + 1 if ratio > 1 + self._parameters.k1 / 2 else 0
        )
        found = zip((-scores).tolist(), (hit["sort"][1:] for hit in hits), rows.tolist(), strict=True)
        self._best += (one for one in found if one[2] >= 0)
        self._best.sort()
        self.after = hits[-1]["sort"]

    @property
    def complete(self) -> bool:
        """Whether no other document can be in the top k, or enough were tried to make that unlikely."""
        if self._exhausted or (self._seen >= self._most and len(self._best) >= self._k):
            return True
        if len(self._best) < self._k or self.after is None:
            return False
        return -self._best[self._k - 1][0] >= self._ratio * float(self.after[0]) * (1 - ROUNDING)

    def into(self, rows: RowArray, scores: ScoreArray) -> None:
        """Write the top k to `rows` and `scores`, both [k]."""
        for place, (negative, _, row) in enumerate(self._best[: self._k]):
            rows[place], scores[place] = row, -negative


def score(
    counts: Counter[str],
    documents: Sequence[Sequence[str]],
    statistics: Statistics,
    parameters: Bm25Parameters,
) -> ScoreArray:
    """Return the score of each document (a list of terms), float32 [documents], bit for bit as `Bm25Scorer`."""
    discount = _discounts(documents, parameters.b, statistics.total.average)
    norms = (parameters.k1 * discount).astype(np.float32)[:, None]
    found = _term_counts(counts, documents)
    factors = np.divide(found, found + norms, out=np.zeros_like(found), where=found > 0)
    return _weighted_sums(counts, factors, statistics, parameters)


def score_by_fields(
    counts: Counter[str],
    parts: Sequence[Sequence[Sequence[str]]],
    statistics: Statistics,
    parameters: Bm25Parameters,
) -> ScoreArray:
    """Return scores, float32 [documents], bit for bit as `FieldScorer`; `parts`: each field's terms by document."""
    total, fields = statistics.total, parameters.fields
    if len(fields) == 1 and fields[0].weight == 1:
        alone = Statistics(total._replace(tokens=total.by_field[0]), statistics.frequencies)
        return score(counts, parts[0], alone, common(parameters, fields[0]))
    summed = np.zeros((len(parts[0]), len(counts)), dtype=np.float32)
    for field, documents, average in zip(fields, parts, total.averages, strict=True):
        discount = _discounts(documents, b_of(parameters, field), average)
        factors = (field.weight / np.where(discount > 0, discount, 1)).astype(np.float32)
        summed += _term_counts(counts, documents) * factors[:, None]
    saturated = summed + np.float32(parameters.k1)
    np.divide(summed, saturated, out=saturated, where=summed > 0)
    return _weighted_sums(counts, np.where(summed > 0, saturated, np.float32(0)), statistics, parameters)


def _discounts(documents: Sequence[Sequence[str]], b: float, average: float) -> Float64Array:
    """Return the divisors [documents] by which lengths discount counts; lengths are rounded as in postings."""
    places = np.searchsorted(LENGTHS, [len(terms) for terms in documents], side="right") - 1
    discounts: Float64Array = 1 - b + b * LENGTHS[places] / average
    return discounts


def _term_counts(counts: Counter[str], documents: Sequence[Sequence[str]]) -> Float32Array:
    numbers = [[found.get(term, 0) for term in counts] for found in map(Counter, documents)]
    return np.array(numbers, dtype=np.float32).clip(max=MOST_COUNT)


def _weighted_sums(
    counts: Counter[str], factors: Float32Array, statistics: Statistics, parameters: Bm25Parameters
) -> ScoreArray:
    frequency = np.array([statistics.frequencies[term][0] for term in counts], dtype=np.int64)
    ends, repeated = np.array([0, len(counts)]), np.fromiter(counts.values(), np.int64, len(counts))
    weights, (scale,) = weigh(ends, repeated, frequency, statistics.total.number, parameters)
    sums = ((weights * factors).astype(np.int64) + (factors > 0)).sum(axis=1)
    return np.asarray(sums.astype(np.float32) / scale, dtype=np.float32)


class CandidateTerms(ForwardIndex):
    """Describes documents as a directory's forward index does; removed documents do not count in the statistics."""

    def __init__(
        self,
        settings: AnalysisSettings,
        rows: RowArray,
        documents: Sequence[Document],
        queries: Sequence[str],
        statistics: StatisticsCache,
    ) -> None:
        """Index `documents`, whose rows are `rows` (int64 [n], ascending), for `queries`. Raises IndexesError."""
        super().__init__(settings)
        self._rows = rows
        self.add([document.full_text for document in documents])
        known = statistics.of(list(dict.fromkeys([*self._vocabulary.terms, *_terms(settings, queries)])))
        self.commit()
        self.total = known.total.number, known.total.tokens
        self._known = {term_hash(term): count for term, (count, *_) in known.frequencies.items()}

    def describe(self, query: QueryWords, rows: AnyArray) -> Float32Array:
        """Return the features of a query with each of the candidates `rows` (int64 [n]), as in a directory."""
        return super().describe(query, np.searchsorted(self._rows, rows))

    def frequencies(self, hashes: AnyArray, found: Sequence[Found] | None = None) -> AnyArray:
        """Return how many documents of the index have each term, which occurs in a candidate or a query."""
        return np.array([self._known[term] for term in hashes.tolist()], dtype=np.int64)

    def _frequencies_of_segments(self) -> list[Int64Array]:
        return [self.frequencies(segment.hashes) for segment in self._segments]


def _terms(settings: AnalysisSettings, queries: Sequence[str]) -> Iterator[str]:
    analysis = Analysis(settings)
    pieces = (analysis.pieces(analysis.prepare(text)) for text in queries)
    for piece in dict.fromkeys(itertools.chain.from_iterable(pieces)):
        yield from analysis.terms(piece)
