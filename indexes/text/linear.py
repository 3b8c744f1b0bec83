"""Texts as sparse vectors (a row's BM25 weights, divided by their Euclidean length), and linear models over them.

x(t) = idf(t) · (k1 + 1) · f / (f + k1 (1 − b + b · length / average)), which is the BM25 score of the row for the
query consisting only of t (scoring.py). The score of a row is Σ w(t) · x(t) / ‖x‖. All rows are scored directly from
the stored postings (linear.c, or numpy). If BM25 has fields, the same word in two fields counts as two terms, each of
which is multiplied by its field's weight.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from indexes import kernels
from indexes.dtypes import AnyArray, Float32Array, Int64Array
from indexes.interface import Document
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from indexes.text.postings import check_lengths, find, frequencies
from indexes.text.queries import QueryTerms, query_terms
from indexes.text.scoring import Bm25Scorer, lucene_idf

FULL_TEXT = ""  # name of the only field of an index without fields
MIX = 0x9E3779B97F4A7C15  # an odd number that distinguishes the terms of different fields


class TextVector(NamedTuple):
    """A normalised sparse vector: terms (uint64 [n], a hash that also names the field) and values (float32 [n])."""

    terms: AnyArray
    values: Float32Array


class _Field(NamedTuple):
    """A field's scorer, its weight and its parameters; the hashes of its terms are XORed with `mix`."""

    name: str
    scorer: Bm25Scorer
    weight: float
    parameters: Bm25Parameters
    mix: int


class LinearText:
    """The rows of a BM25 index as normalised vectors. Several threads may use it at once."""

    def __init__(
        self, fields: Mapping[str, Bm25Scorer], analysis: AnalysisSettings, parameters: Bm25Parameters
    ) -> None:
        """`fields` has the scorer of each field by name; FULL_TEXT is title and text combined."""
        by_name = {field.name: field for field in parameters.fields}
        self._fields = []
        for number, (name, scorer) in enumerate(fields.items()):
            field = by_name.get(name)
            b = parameters.b if field is None or field.b is None else field.b
            weight = 1.0 if field is None else field.weight
            if weight:
                own = Bm25Parameters(parameters.k1, b, parameters.k3)
                self._fields.append(_Field(name, scorer, weight, own, number * MIX % (1 << 64)))
        self._terms = query_terms(analysis)
        self._library = kernels.load("linear")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._fields[0].scorer.documents if self._fields else 0

    def vector(self, document: Document) -> TextVector:
        """Return the vector of a document, indexed or not; it is empty if the index has none of its terms."""
        return self.vectors([document])[1]

    def vectors(
        self, documents: Sequence[Document], analysis: QueryTerms | None = None
    ) -> tuple[Int64Array, TextVector]:
        """Return the vectors of documents, joined, and how many terms each one has, int64 [documents].

        `analysis`: what turns titles and texts into terms, if not the index's own analysis.
        """
        parts = []
        for field in self._fields:
            is_text = field.name in (FULL_TEXT, "title", "text")
            texts = [d.full_text if field.name == FULL_TEXT else d.field(field.name) for d in documents]
            query = (analysis if analysis and is_text else self._terms).of(texts)
            terms, number = query.hashes, query.counts.astype(np.float32)
            owner = np.repeat(np.arange(len(texts)), np.diff(query.first))
            lengths = np.bincount(owner, query.counts, len(texts)).astype(np.int64).tolist()
            norms = np.array([field.scorer.norm(n, field.parameters) for n in lengths], dtype=np.float32)
            values = self._weights(field, self._places(field, terms)) * (number / (number + norms[owner]))
            parts.append((owner, terms ^ np.uint64(field.mix), values))
        owner, terms, values = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(owner, kind="stable")
        order = order[values[order] > 0]
        owner, terms, values = owner[order], terms[order], values[order]
        lengths = np.sqrt(np.bincount(owner, values**2, len(documents)))
        values = (values / lengths[owner]).astype(np.float32)
        return np.bincount(owner, minlength=len(documents)), TextVector(terms, values)

    def scores(self, terms: AnyArray, weights: AnyArray) -> Float32Array:
        """Return each row's score, float32 [rows], given the terms' (uint64 [n]) `weights` [n]. Raises DamagedError."""
        sums = np.zeros(self.rows, dtype=np.float32)
        for field in self._fields:
            hashes = terms ^ np.uint64(field.mix)
            places = self._places(field, hashes)
            factors = (weights * self._weights(field, places)).astype(np.float32)
            for number, (begin, end, _) in enumerate(places):
                used = np.flatnonzero((end > begin) & (factors != 0))
                self._add(field, number, (begin[used], end[used]), factors[used], sums)
        return sums * self._inverse_lengths

    @functools.cached_property
    def _inverse_lengths(self) -> Float32Array:
        """One divided by the Euclidean length of every row, float32 [rows]; 0 for a row without terms."""
        squares = np.zeros(self.rows, dtype=np.float32)
        for field in self._fields:
            for number, segment in enumerate(field.scorer.segments):
                weights = self._weights(field, self._places(field, segment.terms)).astype(np.float32)
                self._add(
                    field, number, (segment.starts[:-1], segment.starts[1:]), weights, squares, squared=True
                )
        lengths = np.sqrt(squares)
        return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)

    @staticmethod
    def _places(field: _Field, hashes: AnyArray) -> AnyArray:
        return find(field.scorer.segments, hashes)

    def _weights(self, field: _Field, places: AnyArray) -> AnyArray:
        frequency = frequencies(places)
        idf = lucene_idf(frequency, self.rows)
        weights: AnyArray = field.weight * (field.parameters.k1 + 1) * idf * (frequency > 0)
        return weights

    def _add(
        self,
        field: _Field,
        number: int,
        bounds: Sequence[AnyArray],
        weights: Float32Array,
        sums: Float32Array,
        *,
        squared: bool = False,
    ) -> None:
        """Add the values of a segment's postings, or their squares, to their rows' `sums` (float32 [rows])."""
        check_lengths(field.scorer.segments)
        segment, tables = field.scorer.segments[number], field.scorer.tables(field.parameters)
        totals = sums[segment.first : segment.first + segment.documents]
        begin, end = (np.ascontiguousarray(column, dtype=np.int64) for column in bounds)
        codes = field.scorer.codes[number]
        if self._library is not None:
            kernels.call(
                self._library.add, segment.rows, segment.counts, codes, segment.documents, tables.norms, tables.factors,
                len(tables.norms), len(weights), begin, end, weights, int(squared), totals,
            )  # fmt: skip
            return
        for low, high, weight in zip(begin.tolist(), end.tolist(), weights, strict=True):
            rows, counts = segment.rows[low:high], segment.counts[low:high].astype(np.float32)
            value = weight * (counts / (counts + tables.norms[codes[rows]]))
            totals[rows] += value * value if squared else value
