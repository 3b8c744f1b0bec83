"""BM25F: a term's counts in several fields are weighted and summed before they saturate (postings.c, or numpy).

score(q, d) = Σ idf(t) · (k3 + 1) · c / (k3 + c) · (k1 + 1) · f / (k1 + f), where the sum over the fields f = Σ weight
· count / (1 − b + b · length / average) takes the place of BM25's normalised count; in idf, a row counts once, however
many of its fields have the term (Robertson, Zaragoza and Taylor, 2004; Zaragoza et al., TREC 2004, for b per field).
"""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from indexes import kernels
from indexes.arrays import distinct
from indexes.dtypes import AnyArray
from indexes.interface import Mask, RowArray, ScoreArray
from indexes.text.parameters import Bm25Parameters, Field
from indexes.text.postings import PostingsSegment, find
from indexes.text.queries import Queries
from indexes.text.scoring import Bm25Scorer, Scorer, decoded, offer_sums, weigh

MOST_FREQUENCIES = 1 << 20  # maximum number of frequencies that are cached


class _Terms(NamedTuple):
    """The terms of all queries: where each query's begin, their weights, each field's factors by length, and k1 [1]."""

    first: AnyArray
    weights: AnyArray
    factors: Sequence[AnyArray]
    k1: AnyArray


class _Range(NamedTuple):
    """Consecutive rows; for each field, their segment, its length codes, and where the terms' postings are in it."""

    first: int
    documents: int
    segments: Sequence[PostingsSegment]
    codes: Sequence[AnyArray]
    places: Sequence[AnyArray]


class FieldScorer(Scorer):
    """Ranks rows by BM25F. Several threads may search at once.

    `fields` has the scorer of each field by name, all over the same rows. Fields of weight 0 are ignored; if a single
    field of weight 1 remains, the results are those of its scorer.
    """

    def __init__(self, fields: Mapping[str, Bm25Scorer]) -> None:
        self._fields = fields
        self._segments = [segment for scorer in fields.values() for segment in scorer.segments]
        self._documents = next(iter(fields.values())).documents
        self._library = kernels.load("postings")
        self._frequencies: dict[tuple[str, ...], dict[int, int]] = {}

    def is_over(self, fields: Mapping[str, Bm25Scorer]) -> bool:
        """Return whether these are the scorers of the fields by which this scorer ranks."""
        return all(self._fields[name] is scorer for name, scorer in fields.items())

    def _best(
        self, queries: Queries, k: int, allowed: Mask | None, parameters: Bm25Parameters
    ) -> tuple[RowArray, ScoreArray]:
        active = [field for field in parameters.fields if field.weight]
        scorers = [self._fields[field.name] for field in active]
        if len(active) == 1 and active[0].weight == 1:
            return scorers[0]._best(queries, k, allowed, common(parameters, active[0]))
        first, hashes = queries.first, queries.hashes
        places = [find(scorer.segments, hashes) for scorer in scorers]
        frequency = self._frequency(tuple(field.name for field in active), hashes, scorers, places)
        weights, scales = weigh(first, queries.counts, frequency, self._documents, parameters)
        factors = [
            scorer.factors(f.weight, b_of(parameters, f)) for scorer, f in zip(scorers, active, strict=True)
        ]
        terms = _Terms(first, weights, factors, np.array([parameters.k1], dtype=np.float32))
        keys = np.zeros((len(queries), k), dtype=np.uint64)
        for part in _ranges(scorers, places, self._documents):
            mask = None if allowed is None else allowed[part.first : part.first + part.documents]
            if self._library is None:
                offer_by_numpy(part, terms, mask, keys)
            else:
                _offer(self._library, part, terms, mask, keys)
        return decoded(keys, scales)

    def holding(self, terms: Sequence[int]) -> RowArray:
        """Return the rows (int64 [n], ascending) with each of `terms` (hashes) in any field. Raises DamagedError."""
        by_term = [
            distinct(np.concatenate([scorer.holding([term]) for scorer in self._fields.values()]))
            for term in terms
        ]
        return functools.reduce(functools.partial(np.intersect1d, assume_unique=True), by_term)

    def _frequency(
        self,
        names: tuple[str, ...],
        hashes: AnyArray,
        scorers: Sequence[Bm25Scorer],
        places: Sequence[AnyArray],
    ) -> AnyArray:
        """Return how many rows have each term in any of the fields, int64 [terms]; the counts are cached."""
        known = self._frequencies.setdefault(names, {})
        if len(known) > MOST_FREQUENCIES:
            known.clear()
        seen = np.zeros(self._documents + 1, dtype=bool)
        out = np.zeros(len(hashes), dtype=np.int64)
        for number, term in enumerate(hashes.tolist()):
            count = known.get(term)
            if count is None:
                lists = [
                    segment.rows[bounds[0, number] : bounds[1, number]].astype(np.int64) + segment.first
                    for scorer, of_field in zip(scorers, places, strict=True)
                    for segment, bounds in zip(scorer.segments, of_field, strict=True)
                ]
                count = known[term] = _different(lists, seen)
            out[number] = count
        return out


def _offer(library: Any, part: _Range, terms: _Terms, allowed: Mask | None, keys: AnyArray) -> None:
    """Offer the rows of a range to `keys` (uint64 [n, k]): per query, a heap of its best scores and rows so far."""
    segments, places = part.segments, np.stack(part.places)
    shift = np.array([part.first - s.first for s in segments], dtype=np.int64)
    kernels.call(
        library.search_fields, len(segments), _addresses([s.rows for s in segments]),
        _addresses([s.counts for s in segments]), _addresses(part.codes), _addresses(terms.factors), shift, terms.k1,
        part.documents, part.first, allowed, len(keys), terms.first, places, places.shape[2], terms.weights,
        keys.shape[1], keys,
    )  # fmt: skip


def offer_by_numpy(part: _Range, terms: _Terms, allowed: Mask | None, keys: AnyArray) -> None:
    """Do the same as `_offer`, in numpy, with identical results."""
    fields = list(zip(part.segments, part.codes, part.places, terms.factors, strict=True))
    for q, heap in enumerate(keys):
        sums = np.zeros(part.documents, dtype=np.int64)
        for term in range(terms.first[q], terms.first[q + 1]):
            frequency = np.zeros(part.documents, dtype=np.float32)
            for segment, codes, places, factor in fields:
                postings = slice(*places[:2, term])
                rows, counts = (
                    segment.rows[postings].astype(np.int64),
                    segment.counts[postings].astype(np.float32),
                )
                here = rows + (segment.first - part.first)
                inside = (here >= 0) & (here < part.documents)
                frequency[here[inside]] += counts[inside] * factor[codes[rows[inside]]]
            hits = np.flatnonzero(frequency)
            saturated = frequency[hits] / (terms.k1 + frequency[hits])
            sums[hits] += (terms.weights[term] * saturated).astype(np.int64) + 1
        offer_sums(heap, sums, part.first, allowed)


def b_of(parameters: Bm25Parameters, field: Field) -> float:
    """Return the b of a field: its own, or else the common one."""
    return parameters.b if field.b is None else field.b


def common(parameters: Bm25Parameters, field: Field) -> Bm25Parameters:
    """Return the parameters for BM25 over this field only."""
    return Bm25Parameters(parameters.k1, b_of(parameters, field), parameters.k3)


def _ranges(scorers: Sequence[Bm25Scorer], places: Sequence[AnyArray], documents: int) -> Iterator[_Range]:
    """Yield the rows in the longest ranges that cross no segment boundary of any field."""
    firsts = [np.array([s.first for s in scorer.segments], dtype=np.int64) for scorer in scorers]
    edges = [*distinct(np.concatenate(firsts)).tolist(), documents]
    for low, high in itertools.pairwise(edges):
        numbers = [int(np.searchsorted(f, low, side="right")) - 1 for f in firsts]
        yield _Range(
            low,
            high - low,
            [scorer.segments[n] for scorer, n in zip(scorers, numbers, strict=True)],
            [scorer.codes[n] for scorer, n in zip(scorers, numbers, strict=True)],
            [of_field[n] for of_field, n in zip(places, numbers, strict=True)],
        )


def _different(lists: Sequence[AnyArray], seen: AnyArray) -> int:
    """Return the number of distinct rows in `lists`, none of which repeats a row.

    `seen` (bool [rows + 1]) is working space: all false before and after the call.
    """
    count, last = 0, len(seen) - 1
    # A damaged file must not cause an access out of bounds.
    lists = [np.minimum(rows, last) for rows in lists]
    for rows in lists:
        count += len(rows) - int(np.count_nonzero(seen[rows]))
        seen[rows] = True
    for rows in lists:
        seen[rows] = False
    return min(count, last)


def _addresses(arrays: Sequence[AnyArray]) -> AnyArray:
    return np.array([a.__array_interface__["data"][0] for a in arrays], dtype=np.uint64)
