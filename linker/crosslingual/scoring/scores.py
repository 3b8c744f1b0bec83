"""Weak scores between two collections, each a product of two matrices, so that blocks of all pairs are cheap.

A translation matrix [v source, v target] holds the weights of term translations. The scores over it are coverage (M of
Li & Gaussier), BM25 with translations as synonyms (Pirkola's structured queries) in both directions, a tf-idf cosine of
the translated page, and the likelihood of the source page under the target's translation model (Berger & Lafferty
1999). Each function below takes the `Terms` of n source and m target pages and returns a scorer of shape [n, m].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.pages.pages import Terms
from linker.crosslingual.scoring.comparability import idf

K1, B, K3 = 1.2, 0.6, 1.2
FROM_PAGE = 0.3  # share of words that the translation model draws from the page, not the collection
SparseOrDense = sp.csr_array | Float32Array


class Restrictable(Protocol):
    """A scorer that can be restricted to some of its pages."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        ...

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        ...

    def restrict(self, rows: Int64Array, columns: Int64Array) -> Restrictable:
        """Return the scorer of the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m'])."""
        ...


@dataclass(frozen=True, eq=False)
class WeightedProduct:
    """`left` [n, d] · `right` [d, m], divided by `source_mass` [n] + `target_mass` [m] if both are present."""

    left: SparseOrDense
    right: SparseOrDense
    source_mass: Float32Array | None = None
    target_mass: Float32Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        return self.left.shape[0], self.right.shape[1]

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        product = self.left[begin:end] @ self.right
        values = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float32)
        if self.source_mass is not None and self.target_mass is not None:
            values /= np.maximum(self.source_mass[begin:end, None] + self.target_mass, 1e-6)
        return values

    def swapped(self) -> WeightedProduct:
        """Return the same scores transposed: [m, n]."""
        return WeightedProduct(
            _transposed(self.right), _transposed(self.left), self.target_mass, self.source_mass
        )

    def restrict(self, rows: Int64Array, columns: Int64Array) -> WeightedProduct:
        """Return the scorer of the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m'])."""
        source = None if self.source_mass is None else self.source_mass[rows]
        target = None if self.target_mass is None else self.target_mass[columns]
        return WeightedProduct(self.left[rows], self.right[:, columns], source, target)


@dataclass(frozen=True, eq=False)
class Dense:
    """Scores held in memory: float32 [n, m]."""

    values: Float32Array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        return self.values.shape[0], self.values.shape[1]

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, m]."""
        return self.values[begin:end]

    def restrict(self, rows: Int64Array, columns: Int64Array) -> Dense:
        """Return the scorer of the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m'])."""
        return Dense(self.values[np.ix_(rows, columns)])


def held(score: Restrictable, block: int = 512) -> Dense:
    """Return all scores [n, m], computed in blocks of `block` source pages."""
    if isinstance(score, Dense):
        return score
    n, m = score.shape
    values = np.empty((n, m), np.float32)
    for begin in range(0, n, block):
        values[begin : begin + block] = score.block(begin, min(begin + block, n))
    return Dense(values)


def coverage(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return idf-weighted M [n, m]: the share of both pages' translatable words with a translation on the other."""
    forward, backward = (
        one_way(source, target, translations),
        one_way(target, source, _transposed(translations)).swapped(),
    )
    left = sp.hstack([_csr(forward.left), _csr(backward.left)])
    right = sp.vstack([_csr(forward.right), _csr(backward.right)])
    return WeightedProduct(_csr(left), _csr(right), forward.source_mass, backward.target_mass)


def one_way(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return M_fe [n, m]: the idf-weighted share of the source's translatable words that the target translates."""
    links = ones(translations)
    known = np.asarray(links.sum(axis=1)).ravel() > 0
    weighted = scale_columns(source.present, idf(source) * known)
    translated = ones(_csr(target.present @ _transposed(links)))
    mass = np.asarray(weighted.sum(axis=1), np.float32).ravel()
    return WeightedProduct(
        weighted, _transposed(translated), mass, np.zeros(target.counts.shape[0], np.float32)
    )


def synonyms(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return BM25 [n, m] of the source's terms, where all translations of a term count as that term (Pirkola 1998)."""
    translated = _csr(target.counts @ ones(translations).T)
    lengths = np.asarray(target.counts.sum(axis=1), np.float32).ravel()
    return WeightedProduct(_query_weights(source, translated), _transposed(_saturated(translated, lengths)))


def synonyms_backward(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return BM25 of the target's terms on the source page, transposed back to [n, m]."""
    return synonyms(target, source, _transposed(translations)).swapped()


def cosine(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return the tf-idf cosine [n, m] of the translated source page; translations of a term share its mass."""
    logarithmic = _map(source.counts, lambda data: 1 + np.log(data))
    translated = scale_columns(_csr(logarithmic @ stochastic(translations)), idf(target))
    return WeightedProduct(unit_rows(translated), _transposed(tfidf(target)))


def translation_model(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return the mean log ratio [n, m] of the source's words, target's translation model against the collection.

    P(w | page) = .3 · Σ_v P(w | v) tf(v)/|page| + .7 · P(w) (Berger & Lafferty 1999); each word is weighted by the
    square root of its frequency.
    """
    length = np.asarray(target.counts.sum(axis=1), np.float32).ravel()
    shares = _rows(target.counts, 1 / np.maximum(length, 1))
    expected = _csr(shares @ stochastic(_transposed(translations)))
    often = np.asarray(source.counts.sum(axis=0), np.float64).ravel() + 0.5
    ratio = FROM_PAGE / (1 - FROM_PAGE) * often.sum() / np.maximum(often, 0.5)
    expected = _map(scale_columns(expected, ratio.astype(np.float32)), np.log1p)
    roots = _map(source.counts, np.sqrt)
    total = np.asarray(roots.sum(axis=1), np.float32).ravel()
    return WeightedProduct(_rows(roots, 1 / np.maximum(total, 1)), _transposed(expected))


def common(source: Terms, target: Terms) -> WeightedProduct:
    """Return the tf-idf cosine [n, m] over the terms of both vocabularies, with the target's idf."""
    shared = sorted(source.position.keys() & target.position.keys())
    left = source.counts[:, [source.position[t] for t in shared]]
    right = target.counts[:, [target.position[t] for t in shared]]
    both = Terms(tuple(shared), _csr(right))
    return WeightedProduct(
        weighted_by(_csr(left), idf(both)), _transposed(weighted_by(_csr(right), idf(both)))
    )


def tfidf(terms: Terms) -> sp.csr_array:
    """Return (1 + ln tf) · idf in rows of unit length: float32 CSR [pages, v]."""
    return weighted_by(terms.counts, idf(terms))


def unit_rows(matrix: sp.csr_array) -> sp.csr_array:
    """Return the matrix [n, v] with every row scaled to unit length; empty rows stay empty."""
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1), np.float32)).ravel()
    return _rows(matrix, 1 / np.maximum(norms, 1e-12))


def weighted_by(counts: sp.csr_array, weights: Float32Array) -> sp.csr_array:
    """Return (1 + ln tf) · weight, `weights` [v], in rows of unit length: float32 CSR [pages, v]."""
    return unit_rows(scale_columns(_map(counts, lambda data: 1 + np.log(data)), weights))


def _query_weights(source: Terms, translated: sp.csr_array) -> sp.csr_array:
    """Return saturated frequency times idf of each source term; idf counts the pages with any translation of it."""
    n = translated.shape[0]
    frequency = np.bincount(translated.indices, minlength=translated.shape[1])
    weights = np.where(frequency > 0, np.log1p((n - frequency + 0.5) / (frequency + 0.5)), 0).astype(
        np.float32
    )
    return scale_columns(_map(source.counts, lambda tf: tf * (K3 + 1) / (tf + K3)), weights)


def _saturated(counts: sp.csr_array, lengths: Float32Array) -> sp.csr_array:
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-6))
    rows = np.repeat(norm, np.diff(counts.indptr))
    return _map(counts, lambda tf: tf * (K1 + 1) / (tf + rows))


def stochastic(translations: sp.csr_array) -> sp.csr_array:
    """Return the matrix [v source, v target] with every row scaled to sum to one; empty rows stay empty."""
    return _rows(
        translations, 1 / np.maximum(np.asarray(translations.sum(axis=1), np.float32).ravel(), 1e-12)
    )


def _map(matrix: sp.csr_array, function: Callable[[Float32Array], npt.NDArray[np.floating]]) -> sp.csr_array:
    data = np.asarray(function(matrix.data.astype(np.float32)), np.float32)
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def ones(matrix: sp.csr_array) -> sp.csr_array:
    """Return the matrix [n, v] with every stored value replaced by 1."""
    return _map(matrix, np.ones_like)


def _rows(matrix: sp.csr_array, factors: npt.NDArray[np.floating]) -> sp.csr_array:
    per_value = np.repeat(factors, np.diff(matrix.indptr))
    return _map(matrix, lambda data: data * per_value)


def scale_columns(matrix: sp.csr_array, factors: npt.NDArray[np.floating]) -> sp.csr_array:
    """Return the matrix [n, v] with every column multiplied by its factor in `factors` [v]."""
    return _map(matrix, lambda data: data * factors[matrix.indices])


def _csr(matrix: Any) -> sp.csr_array:
    result: sp.csr_array = sp.csr_array(matrix).astype(np.float32)
    return result


def _transposed(matrix: SparseOrDense) -> sp.csr_array:
    return _csr(matrix.T)
