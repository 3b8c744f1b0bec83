"""BM25 over segments of postings: weights of terms, and the best rows of many queries (postings.c, or numpy).

score(q, d) = Σ idf(t) · (k1 + 1) · f / (f + k1 (1 − b + b · length / average)), with Lucene's
idf(t) = ln(1 + (N − n + ½) / (n + ½)); f: count of the term in the row; N: rows, n: those with the term. What is added
up in a query are whole numbers of 52 bits, so that a sum does not depend on its order: what is equal comes out equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from indexes import native
from indexes.arrays import padding
from indexes.dtypes import AnyArray
from indexes.interface import IndexesError, Mask, RowArray, ScoreArray
from indexes.text.postings import LENGTHS, PostingsSegment, check_lengths

K1, B = 1.2, 0.75
TABLED = 8  # counts below this have their factor in a table; as in postings.c
ONE = float(1 << 52)  # what the weights of a query add up to at most
KEYS = 1 << 21  # kept at a time: k of each query
QUERIES = 1 << 16  # looked up at a time, divided by the segments
MOST_ROWS = (1 << 32) - (1 << 13)
LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)

Query = Mapping[int, int]  # a term's hash → how often it counts


class Bm25Scorer:
    """Ranks the rows of some segments. Searches may run in several threads at once."""

    def __init__(self, segments: Sequence[PostingsSegment]) -> None:
        self._segments = segments
        self._documents = sum(s.documents for s in segments)
        if self._documents > MOST_ROWS:
            raise IndexesError(
                f"{self._documents} rows are more than BM25 can number ({MOST_ROWS}): compact the index"
            )
        average = sum(s.tokens for s in segments) / max(1, self._documents) or 1.0
        self._norms = (K1 * (1 - B + B * LENGTHS / average)).astype(np.float32)
        counts = np.arange(TABLED, dtype=np.float32)[:, None]
        self._factors = np.ascontiguousarray(counts / (counts + self._norms))
        self._library = native.load_postings()
        self._pointers = [
            native.pointers(s.rows, s.counts, s.lengths, s.documents, s.first, self._norms, self._factors)
            for s in segments
        ]

    def best(
        self, queries: Sequence[Query], k: int, allowed: Mask | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return the k best rows of each query and their scores, [n, k], filled with −1 and −inf.

        `allowed` [rows] leaves rows out. Equal scores come in row order.
        """
        check_lengths(self._segments)
        rows, scores = padding(len(queries), k)
        if allowed is not None and len(allowed) != self._documents:
            raise IndexesError(
                f"there are {self._documents} indexed texts for {len(allowed)} rows: open it again"
            )
        most = min(k, self._documents)
        step = max(1, min(KEYS // max(1, most), QUERIES // max(1, len(self._segments))))
        for start in range(0, len(queries) if most else 0, step):
            part = slice(start, start + step)
            rows[part, :most], scores[part, :most] = self._best(queries[part], most, allowed)
        return rows, scores

    def _best(self, queries: Sequence[Query], k: int, allowed: Mask | None) -> tuple[RowArray, ScoreArray]:
        sizes = np.array([len(q) for q in queries])
        first = np.zeros(len(queries) + 1, dtype=np.int64)
        np.cumsum(sizes, out=first[1:])
        hashes = np.array([h for q in queries for h in q], dtype=np.uint64)
        counts = np.array([n for q in queries for n in q.values()], dtype=np.float64)
        places = [_find(segment, hashes) for segment in self._segments]
        frequency = sum(stop - start for start, stop, _ in places)
        idf = np.log1p((self._documents - frequency + 0.5) / (frequency + 0.5))
        weights = counts * (K1 + 1) * idf * (frequency > 0)
        query_of = np.repeat(np.arange(len(queries)), sizes)
        totals = np.bincount(query_of, weights, minlength=len(queries))
        # powers of two, by which a float is divided without loss
        scales = np.exp2(np.floor(np.log2(ONE / np.maximum(totals, 1e-30))))
        weights = (weights * scales[query_of]).astype(np.float32)
        keys = np.zeros((len(queries), k), dtype=np.uint64)
        for number, segment in enumerate(self._segments):
            here = None if allowed is None else allowed[segment.first : segment.first + segment.documents]
            self._offer(number, first, places[number], weights, here, keys)
        return _decoded(keys, scales)

    def _offer(
        self,
        number: int,
        first: AnyArray,
        places: AnyArray,
        weights: AnyArray,
        allowed: Mask | None,
        keys: AnyArray,
    ) -> None:
        """Offer a segment's rows to the keys kept so far [n, k], each query's a heap."""
        if self._library is None:
            self._offer_by_numpy(number, first, places, weights, allowed, keys)
        else:
            native.call(
                self._library.search, *self._pointers[number], allowed, len(keys), first, places, places.shape[1],
                weights, keys.shape[1], keys,
            )  # fmt: skip

    def _offer_by_numpy(
        self,
        number: int,
        first: AnyArray,
        places: AnyArray,
        weights: AnyArray,
        allowed: Mask | None,
        keys: AnyArray,
    ) -> None:
        """Do as the compiled loop, to the same bits."""
        segment = self._segments[number]
        for q, kept in enumerate(keys):
            sums = np.zeros(segment.documents, dtype=np.int64)
            for term in range(first[q], first[q + 1]):
                here = slice(*places[:2, term])
                rows, counts = segment.rows[here], segment.counts[here].astype(np.float32)
                factors = counts / (counts + self._norms[segment.lengths[rows]])
                sums[rows] += (weights[term] * factors).astype(np.int64) + 1
            if allowed is not None:
                sums[~allowed] = 0
            found = np.flatnonzero(sums)
            new = sums[found].astype(np.float32).view(np.uint32).astype(np.uint64) << HIGH
            new |= LOW - (found + segment.first).astype(np.uint64)
            kept[:] = np.partition(np.concatenate((kept, new)), len(new))[len(new) :]


def _find(segment: PostingsSegment, hashes: AnyArray) -> AnyArray:
    """Return int64 [3, terms]: where a term's postings begin, where they end (there too if it has none), and room."""
    places = np.zeros((3, len(hashes)), dtype=np.int64)
    if len(segment.terms):
        term = np.minimum(np.searchsorted(segment.terms, hashes), len(segment.terms) - 1)
        there = segment.terms[term] == hashes
        np.multiply(segment.starts[term], there, out=places[0])
        np.multiply(segment.starts[term + 1], there, out=places[1])
    return places


def _decoded(keys: AnyArray, scales: AnyArray) -> tuple[RowArray, ScoreArray]:
    """Return the rows and scores of keys [n, k], best first."""
    keys = np.sort(keys, axis=1)[:, ::-1]
    rows = (LOW - (keys & LOW)).astype(np.int64)
    scores = ((keys >> HIGH).astype(np.uint32).view(np.float32) / scales[:, None]).astype(np.float32)
    empty = keys == 0
    rows[empty], scores[empty] = -1, -np.inf
    return rows, scores
