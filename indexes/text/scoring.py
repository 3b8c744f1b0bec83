"""BM25 over segments of postings: the weights of terms, and the best rows of many queries (postings.c, or numpy).

score(q, d) = Σ idf(t) · (k3 + 1) · c / (k3 + c) · (k1 + 1) · f / (f + k1 (1 − b + b · length / average)), with
Lucene's idf(t) = ln(1 + (N − n + ½) / (n + ½)); c, f: counts of the term in the query and in the row; N: rows; n:
rows with the term. The terms of a sum are rounded to integers of at most 52 bits, so that it does not depend on their
order and ties stay ties.
"""

import abc
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from indexes import kernels
from indexes.arrays import padding
from indexes.dtypes import AnyArray, Float64Array
from indexes.interface import IndexesError, Mask, RowArray, ScoreArray
from indexes.text.parameters import LONG_QUERY, Bm25Parameters
from indexes.text.postings import BRIEF, LENGTHS, PostingsSegment, check_lengths, find, frequencies
from indexes.text.queries import Queries

TABLED = 8  # the factors of smaller counts are in a table; the same as in postings.c
ONE = float(1 << 52)  # upper bound of the sum of a query's weights
KEYS = 1 << 21  # maximum number of keys (k per query) in a batch
QUERIES = 1 << 16  # this, divided by the number of segments, is the maximum number of queries in a batch
MOST_ROWS = (1 << 32) - (1 << 13)
MOST_TABLES = 4  # maximum number of cached tables, each for one k1, b and k3
LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)
# libm's logarithm, as in the compiled loop: numpy's own can differ in the last bit.
LOG1P = np.vectorize(math.log1p, otypes=[np.float64])

DEFAULT = Bm25Parameters()


class ScoringTables(NamedTuple):
    """Tables for k1 and b: the norm by length code, [codes], and the factor by count and length code, [TABLED, codes].

    `layout`: `Scoring` as postings.c declares it, int64 [9]; its last entries are the floats k1, k3 and LONG_QUERY.
    """

    norms: AnyArray
    factors: AnyArray
    layout: AnyArray


class WeightedTerms(NamedTuple):
    """The terms of some queries: the index of each query's `first` term, `places` (see `find`), and weights."""

    tables: ScoringTables
    first: AnyArray
    places: AnyArray
    weights: AnyArray


class Scorer(abc.ABC):
    """Ranks rows for many queries, in batches."""

    _segments: Sequence[PostingsSegment]
    _documents: int

    def best(
        self, queries: Queries, k: int, allowed: Mask | None = None, parameters: Bm25Parameters = DEFAULT
    ) -> tuple[RowArray, ScoreArray]:
        """Return the top k rows of each query and their scores, both [n, k], padded with −1 and −inf.

        Only rows that `allowed` (bool [rows]) marks are returned. Equal scores come in row order. Raises IndexesError
        if `allowed` has the wrong length, DamagedError if a segment's file has become shorter.
        """
        check_lengths(self._segments)
        if allowed is not None and len(allowed) != self._documents:
            raise IndexesError(
                f"there are {self._documents} indexed texts for {len(allowed)} rows: open the index again"
            )
        most = min(k, self._documents)
        step = max(1, min(KEYS // max(1, most), QUERIES // max(1, len(self._segments))))
        if 0 < k == most and 0 < len(queries) <= step:
            return self._best(queries, k, allowed, parameters)
        rows, scores = padding(len(queries), k)
        for start in range(0, len(queries) if most else 0, step):
            part = slice(start, start + step)
            rows[part, :most], scores[part, :most] = self._best(queries[part], most, allowed, parameters)
        return rows, scores

    @abc.abstractmethod
    def _best(
        self, queries: Queries, k: int, allowed: Mask | None, parameters: Bm25Parameters
    ) -> tuple[RowArray, ScoreArray]:
        """Do the same as `best` for one batch of queries, with a k of at most the number of rows."""


class Bm25Scorer(Scorer):
    """Ranks the rows of segments by BM25. Several threads may search at once.

    Raises IndexesError if the segments have too many rows.
    """

    def __init__(self, segments: Sequence[PostingsSegment]) -> None:
        self._segments = segments
        self._documents = sum(s.documents for s in segments)
        if self._documents > MOST_ROWS:
            raise IndexesError(
                f"the index has {self._documents} rows, more than BM25 supports ({MOST_ROWS}): compact it"
            )
        self._codes = [s.codes for s in segments]
        self._layouts = np.array([s.layout for s in segments], dtype=np.int64).reshape(-1, 8)
        self._lengths = LENGTHS[: max((s.most for s in segments), default=0) + 1]
        self._average = sum(s.tokens for s in segments) / max(1, self._documents) or 1.0
        self._tables: dict[tuple[float, float, float], ScoringTables] = {}
        self._library = kernels.load("postings")

    @property
    def segments(self) -> Sequence[PostingsSegment]:
        """The segments in row order."""
        return self._segments

    @property
    def documents(self) -> int:
        """Number of rows."""
        return self._documents

    @property
    def codes(self) -> Sequence[AnyArray]:
        """The codes of the lengths of each segment's rows, uint16."""
        return self._codes

    def factors(self, weight: float, b: float) -> AnyArray:
        """Return the factor of a count before saturation, by length code, float32 [codes]."""
        lengths = 1 - b + b * self._lengths / self._average
        # With b = 1, a length can be 0, but such a row has no postings.
        return (weight / np.where(lengths > 0, lengths, 1)).astype(np.float32)

    def norm(self, length: int, parameters: Bm25Parameters) -> float:
        """Return the term that BM25 adds to a count in a text of this length: k1 (1 − b + b · length / average)."""
        return parameters.k1 * (1 - parameters.b + parameters.b * length / self._average)

    def tables(self, parameters: Bm25Parameters) -> ScoringTables:
        """Return the tables for these parameters; the latest MOST_TABLES are cached."""
        k1, b, k3 = parameters.k1, parameters.b, parameters.k3
        tables = self._tables.get((k1, b, k3))
        if tables is None:
            tables = self._made(k1, b, k3)
            # This makes a new dictionary, since other threads may be reading the old one.
            self._tables = dict([*self._tables.items(), ((k1, b, k3), tables)][-MOST_TABLES:])
        return tables

    def _made(self, k1: float, b: float, k3: float) -> ScoringTables:
        norms = (k1 * (1 - b + b * self._lengths / self._average)).astype(np.float32)
        counts = np.arange(TABLED, dtype=np.float32)[:, None]
        factors = np.zeros((TABLED, len(norms)), dtype=np.float32)
        np.divide(counts, counts + norms, out=factors, where=counts > 0)
        segments, *tables = (a.__array_interface__["data"][0] for a in (self._layouts, norms, factors))
        sizes = np.array([len(self._segments), segments, self._documents, *tables, len(norms)])
        floats = np.array([k1, k3, LONG_QUERY], dtype=np.float64)
        return ScoringTables(norms, factors, np.concatenate((sizes, floats.view(np.int64))))

    def holding(self, terms: Sequence[int]) -> RowArray:
        """Return the rows that have all of `terms` (hashes), int64 [n], ascending. Raises DamagedError."""
        check_lengths(self._segments)
        hashes = np.array(terms, dtype=np.uint64)
        found = [_holding(s, hashes) + s.first for s in self._segments]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def _best(
        self, queries: Queries, k: int, allowed: Mask | None, parameters: Bm25Parameters
    ) -> tuple[RowArray, ScoreArray]:
        if self._library is None:
            return self._best_in_steps(queries, k, allowed, parameters)
        rows, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        tables = self.tables(parameters)
        call = self._library.best
        if kernels.call(call, tables.layout, allowed, len(queries), queries.data, k, rows, scores):
            raise MemoryError
        return rows, scores

    def _best_in_steps(
        self, queries: Queries, k: int, allowed: Mask | None, parameters: Bm25Parameters
    ) -> tuple[RowArray, ScoreArray]:
        """Do the same as the compiled `best`, for subclasses that override `_offer`, and without compiled code."""
        places, weights, scales = self._ask(queries, parameters)
        terms = WeightedTerms(self.tables(parameters), queries.first, places, weights)
        keys = np.zeros((len(queries), k), dtype=np.uint64)
        self._offer(slice(0, len(self._segments)), terms, allowed, keys)
        return decoded(keys, scales)

    def _ask(self, queries: Queries, parameters: Bm25Parameters) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return the places of the queries' terms (see `find`), their weights and each query's scale (see `weigh`)."""
        first, hashes, counts = queries.first, queries.hashes, queries.counts
        library = kernels.load("postings", len(self._segments) * len(hashes) <= BRIEF)
        if library is None or not self._segments:
            places = find(self._segments, hashes, self._layouts)
            return places, *weigh(first, counts, frequencies(places), self._documents, parameters)
        places = np.empty((len(self._segments), 3, len(hashes)), dtype=np.int64)
        weights, scales = np.empty(len(hashes), dtype=np.float32), np.empty(len(queries))
        numbers = self.tables(parameters).layout[-3:]
        kernels.call(
            library.ask, len(self._segments), self._layouts, self._documents, numbers, len(queries), first, hashes,
            counts, places, weights, scales,
        )  # fmt: skip
        return places, weights, scales

    def _offer(self, part: slice, terms: WeightedTerms, allowed: Mask | None, keys: AnyArray) -> None:
        """Offer the rows of some segments to `keys` (uint64 [n, k]): per query, a heap of its best scores and rows."""
        places, layouts, tables = terms.places[part], self._layouts[part], terms.tables
        if self._library is None:
            for segment, codes, of in zip(self._segments[part], self._codes[part], places, strict=True):
                mask = None if allowed is None else allowed[segment.first : segment.first + segment.documents]
                _offer_by_numpy(segment, tables.norms[codes], terms, of, mask, keys)
        else:
            kernels.call(
                self._library.search, len(layouts), layouts, tables.norms, tables.factors, len(tables.norms), allowed,
                len(keys), terms.first, places, places.shape[2], terms.weights, keys.shape[1], keys,
            )  # fmt: skip


def _offer_by_numpy(
    segment: PostingsSegment,
    norms: AnyArray,
    terms: WeightedTerms,
    places: AnyArray,
    allowed: Mask | None,
    keys: AnyArray,
) -> None:
    """Do the same as the compiled loop for one segment, whose rows have these `norms`, with identical results."""
    for q, heap in enumerate(keys):
        sums = np.zeros(segment.documents, dtype=np.int64)
        for term in range(terms.first[q], terms.first[q + 1]):
            postings = slice(*places[:2, term])
            rows, counts = segment.rows[postings], segment.counts[postings].astype(np.float32)
            factors = counts / (counts + norms[rows])
            sums[rows] += (terms.weights[term] * factors).astype(np.int64) + 1
        offer_sums(heap, sums, segment.first, allowed)


def weigh(
    first: AnyArray, counts: AnyArray, frequency: AnyArray, documents: int, parameters: Bm25Parameters
) -> tuple[AnyArray, AnyArray]:
    """Return the weight of each term (float32 [terms]), scaled to integers, and each query's scale [n].

    Query q has the terms first[q] … first[q + 1] − 1 (int64 [n + 1]). `counts`: how often each occurs in its query;
    `frequency`: how many of `documents` have it, both int64 [terms].
    """
    idf = lucene_idf(frequency, documents, LOG1P)
    query_of, repeated = np.repeat(np.arange(len(first) - 1), np.diff(first)), counts.astype(np.float64)
    lengths = np.bincount(query_of, repeated, len(first) - 1)[query_of].astype(np.float64)
    weights = parameters.query_weights(repeated, lengths) * (parameters.k1 + 1) * idf * (frequency > 0)
    totals = np.bincount(query_of, weights, minlength=len(first) - 1)
    # Scales are powers of two, so that dividing a float by them is exact.
    scales = np.ldexp(1.0, np.frexp(ONE / np.maximum(totals, 1e-30))[1] - 1)
    return (weights * scales[query_of]).astype(np.float32), scales


def lucene_idf(
    frequency: AnyArray, documents: int, log1p: Callable[[AnyArray], AnyArray] = np.log1p
) -> Float64Array:
    """Return Lucene's idf, ln(1 + (N − n + ½) / (n + ½)), of terms that `frequency` of `documents` have, float64."""
    return np.asarray(log1p((documents - frequency + 0.5) / (frequency + 0.5)))


def offer_sums(heap: AnyArray, sums: AnyArray, first: int, allowed: Mask | None) -> None:
    """Offer rows from `first` on, which have these `sums` (int64 [rows]; 0: no hit), to a heap, as postings.c does."""
    if allowed is not None:
        sums[~allowed] = 0
    hits = np.flatnonzero(sums)
    new = sums[hits].astype(np.float32).view(np.uint32).astype(np.uint64) << HIGH
    new |= LOW - (hits + first).astype(np.uint64)
    heap[:] = np.partition(np.concatenate((heap, new)), len(new))[len(new) :]


def _holding(segment: PostingsSegment, hashes: AnyArray) -> RowArray:
    """Return the rows of a segment, counted from its first, that have all of the terms (at least one)."""
    begins, ends, _ = find([segment], hashes)[0]
    rarest, *others = np.argsort(ends - begins).tolist()
    rows = segment.rows[begins[rarest] : ends[rarest]]
    for term in others if len(rows) else ():
        more = segment.rows[begins[term] : ends[term]]
        rows = rows[more[np.minimum(np.searchsorted(more, rows), len(more) - 1)] == rows]
    return rows.astype(np.int64)


def decoded(keys: AnyArray, scales: AnyArray) -> tuple[RowArray, ScoreArray]:
    """Return the rows and scores, both [n, k], that `keys` (uint64 [n, k]) encode, best first; may sort `keys`."""
    library = kernels.load("postings", keys.size <= BRIEF)
    if library is None:
        return _decoded_by_numpy(keys, scales)
    rows, scores = np.empty(keys.shape, dtype=np.int64), np.empty(keys.shape, dtype=np.float32)
    kernels.call(library.decode, *keys.shape, keys, scales, rows, scores)
    return rows, scores


def _decoded_by_numpy(keys: AnyArray, scales: AnyArray) -> tuple[RowArray, ScoreArray]:
    """Do the same as the compiled loop, with identical results."""
    keys = np.sort(keys, axis=1)[:, ::-1]
    rows = (LOW - (keys & LOW)).astype(np.int64)
    scores = ((keys >> HIGH).astype(np.uint32).view(np.float32) / scales[:, None]).astype(np.float32)
    empty = keys == 0
    rows[empty], scores[empty] = -1, -np.inf
    return rows, scores
