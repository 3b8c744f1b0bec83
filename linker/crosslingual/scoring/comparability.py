"""Comparability over a bilingual lexicon (Li & Gaussier), binary or idf-weighted, and a cosine of translated vectors.

M(f, e) = [Σ_{w ∈ V(f)∩D_F} σ(w, e) + Σ_{v ∈ V(e)∩D_E} σ(v, f)] / (|V(f)∩D_F| + |V(e)∩D_E|), where σ(w, d) = 1 iff
d contains a translation of w. Both are exact: one sparse product per block and direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from indexes.dtypes import BoolArray, Float32Array
from linker.crosslingual.pages.pages import Terms
from linker.crosslingual.scoring.split_product import SplitProduct

Weighting = Literal["binary", "idf"]
Direction = Literal["both", "forward", "backward"]


def idf(terms: Terms) -> Float32Array:
    """Return ln((N + 1) / (df + 1)) for each term: float32 [v]; the background pages are also counted."""
    n, often = terms.counts.shape[0], terms.document_frequency
    if terms.background:
        n, often = n + terms.background[1], often + terms.background[0]
    return np.asarray(np.log((n + 1) / (often + 1)), np.float32)


@dataclass(frozen=True, eq=False)
class Comparability:
    """M of all pairs: the sum of `hits`, a product per direction, divided by `source_mass` [n] + `target_mass` [m]."""

    hits: tuple[SplitProduct, ...]
    source_mass: Float32Array
    target_mass: Float32Array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and target pages."""
        return self.hits[0].shape

    def block(self, begin: int, end: int) -> Float32Array:
        """Return M of the source pages begin … end−1: float32 [end − begin, targets]; 0 without known words."""
        scores = self.hits[0].block(begin, end)
        for hits in self.hits[1:]:
            scores += hits.block(begin, end)
        # Row by row, to stay in the CPU cache. Without mass there are no hits either, and the score stays 0.
        others = np.maximum(self.target_mass, np.finfo(np.float32).tiny)
        for i, mass in enumerate(self.source_mass[begin:end]):
            scores[i] /= mass + others
        return scores


def comparability(
    source: Terms,
    target: Terms,
    relation: csr_array,
    *,
    known: tuple[BoolArray, BoolArray] | None = None,
    weighting: Weighting = "idf",
    direction: Direction = "both",
) -> Comparability:
    """Return Li & Gaussier's M for two collections. `relation`: CSR [v source, v target], non-zero for translations.

    `known`: the terms that count in the denominator, bool [v source] and [v target] (`Lexicon.known`); by default the
    terms of the relation, which excludes words whose translations are on no page.
    `weighting`: with "idf", a hit counts the `idf` of its term in its own collection. `direction`: "forward" looks up
    only the source's words in the target (M_fe), "backward" only the target's words in the source (M_ef).
    """
    links = _binary(relation)
    known_source, known_target = known or (_sums(links, 1) > 0, _sums(links, 0) > 0)
    w, v = (idf(source), idf(target)) if weighting == "idf" else (None, None)
    hits = []
    source_mass, target_mass = (np.zeros(terms.present.shape[0], np.float32) for terms in (source, target))
    if direction != "backward":
        x = _scaled(_restricted(source, known_source), w)
        source_mass = _sums(x, 1)
        hits.append(SplitProduct.of(x, _binary(target.present @ links.T.tocsr())))
    if direction != "forward":
        y = _restricted(target, known_target)
        target_mass = _sums(_scaled(y, v), 1)
        hits.append(SplitProduct.of(_scaled(_binary(source.present @ links), v), y))
    return Comparability(tuple(hits), source_mass, target_mass)


def translated_cosine(source: Terms, target: Terms, relation: csr_array) -> SplitProduct:
    """Return cosines of tf-idf vectors, (1 + ln tf) · idf of the targets, after translating the source pages.

    `relation`: CSR [v source, v target]. A term's mass is divided among its translations; without any, the term is
    dropped.
    """
    share = _scaled_rows(relation, _inverse(_sums(relation, 1)))
    weights = idf(target)
    left = _scaled(csr_array(_log_counts(source) @ share), weights)
    return SplitProduct.of(_normalised(left), _normalised(_scaled(_log_counts(target), weights)))


def _log_counts(terms: Terms) -> csr_array:
    counts = terms.counts
    data = (1 + np.log(counts.data)).astype(np.float32)
    return csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def _normalised(matrix: csr_array) -> csr_array:
    squares = csr_array((matrix.data**2, matrix.indices, matrix.indptr), shape=matrix.shape)
    return _scaled_rows(matrix, _inverse(np.sqrt(_sums(squares, 1))))


def _inverse(values: Float32Array) -> Float32Array:
    return np.divide(1, values, out=np.zeros_like(values), where=values > 0)


def _scaled_rows(matrix: csr_array, factors: Float32Array) -> csr_array:
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _sums(matrix: csr_array, axis: int) -> Float32Array:
    return np.asarray(matrix.sum(axis=axis), np.float32).ravel()


def _binary(matrix: csr_array) -> csr_array:
    ones = np.ones(matrix.nnz, np.float32)
    return csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def _restricted(terms: Terms, known: BoolArray) -> csr_array:
    """Return the pages' 0/1 rows over terms, restricted to `known` terms (bool [v])."""
    present = terms.present.copy()
    present.data *= known.astype(np.float32)[present.indices]
    present.eliminate_zeros()
    return present


def _scaled(matrix: csr_array, weights: Float32Array | None) -> csr_array:
    if weights is None:
        return matrix
    data = matrix.data * weights[matrix.indices]
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
