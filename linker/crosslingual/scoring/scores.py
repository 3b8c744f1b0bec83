"""Weak scores between two collections, each a product of two matrices, so that blocks of all pairs are cheap.

A translation matrix [v source, v target] holds the weights of term translations. The scores over it are coverage (M of
Li & Gaussier), BM25 with translations as synonyms (Pirkola's structured queries) in both directions, a tf-idf cosine of
the translated page, and the likelihood of the source page under the target's translation model (Berger & Lafferty
1999). Each function below takes the `Terms` of n source and m target pages and returns a scorer of shape [n, m].
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.pages.pages import Terms
from linker.crosslingual.scoring.candidates import PagePairScorer
from linker.crosslingual.scoring.comparability import idf
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.sparse import PAIRS, dots
from linker.crosslingual.scoring.split_product import SplitProduct

K1, B, K3 = 1.2, 0.6, 1.2
FROM_PAGE = 0.3  # share of words that the translation model draws from the page, not the collection
LEAST_MASS = 1e-6
SparseOrDense = sp.csr_array | sp.csc_array | Float32Array


class Restrictable(Protocol):
    """A score of pairs of pages: all of them by blocks, given ones, and those of some of the pages."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        ...

    def pairs(self, graph: Graph) -> Float32Array:
        """Return the scores of the pairs of a graph of this shape: float32 [pairs]."""
        ...

    def restrict(self, rows: Int64Array, columns: Int64Array) -> PagePairScorer:
        """Return a scorer of all pairs of the source pages `rows` (int64 [n']) and the target pages `columns` [m']."""
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

    @cached_property
    def _product(self) -> SplitProduct | None:
        """The product in the form that is fast for all pairs, if both factors are sparse."""
        if sp.issparse(self.left) and sp.issparse(self.right):
            return SplitProduct.of(_csr(self.left), _csr(self.right.T))
        return None

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        if self._product is not None:
            values = self._product.block(begin, end)
        else:
            values = np.asarray(self.left[begin:end] @ self.right, np.float32)
        if self.source_mass is not None and self.target_mass is not None:
            for i, mass in enumerate(self.source_mass[begin:end]):
                values[i] /= np.maximum(mass + self.target_mass, LEAST_MASS)
        return values

    def pairs(self, graph: Graph) -> Float32Array:
        """Return the scores of the pairs of a graph of this shape: float32 [pairs]."""
        rows, columns = graph.rows, graph.columns
        if sp.issparse(self.left) and sp.issparse(self.right):
            values = dots(_csr(self.left), _csr(self.right.T), graph.begin, columns)
        else:
            values = _dense_dots(np.asarray(self.left), np.asarray(self.right).T, rows, columns)
        if self.source_mass is not None and self.target_mass is not None:
            values /= np.maximum(self.source_mass[rows] + self.target_mass[columns], LEAST_MASS)
        return values

    def swapped(self) -> WeightedProduct:
        """Return the same scores transposed: [m, n]."""
        return WeightedProduct(self.right.T, self.left.T, self.target_mass, self.source_mass)

    def restrict(self, rows: Int64Array, columns: Int64Array) -> WeightedProduct:
        """Return the scorer of the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m'])."""
        everything = zip((rows, columns), self.shape, strict=True)
        if all(np.array_equal(part, np.arange(n)) for part, n in everything):
            return replace(self)  # without what this one caches, and without a copy
        source = None if self.source_mass is None else self.source_mass[rows]
        target = None if self.target_mass is None else self.target_mass[columns]
        left = _csr(self.left) if sp.issparse(self.left) else self.left
        return WeightedProduct(left[rows], self.right[:, columns], source, target)


def _dense_dots(
    left: Float32Array, right: Float32Array, rows: Int64Array, columns: Int64Array
) -> Float32Array:
    def compute(part: slice) -> Float32Array:
        return np.asarray(np.einsum("pd,pd->p", left[rows[part]], right[columns[part]]))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        parts = pool.map(compute, [slice(i, i + PAIRS) for i in range(0, len(rows), PAIRS)])
        return np.concatenate([np.empty(0, np.float32), *parts])


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
        return self.values[begin:end].copy()

    def pairs(self, graph: Graph) -> Float32Array:
        """Return the scores of the pairs of a graph of this shape: float32 [pairs]."""
        return self.values[graph.rows, graph.columns]

    def restrict(self, rows: Int64Array, columns: Int64Array) -> Dense:
        """Return the scorer of the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m'])."""
        return Dense(self.values[np.ix_(rows, columns)])


class Scores(Mapping[str, Restrictable]):
    """Scores by name, each computed when it is asked for; those of many pages together may not fit into memory."""

    def __init__(self, makers: Mapping[str, Callable[[], Restrictable]], *, keep: bool = False) -> None:
        """`makers`: a function without arguments for each name; `keep`: whether to keep what they return."""
        self._makers = {name: cache(make) if keep else make for name, make in makers.items()}

    def __getitem__(self, name: str) -> Restrictable:
        return self._makers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __or__(self, other: Scores) -> Scores:
        """Return the scores of both, in this order."""
        return Scores({**self._makers, **other._makers})


def coverage(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return idf-weighted M [n, m]: the share of both pages' translatable words with a translation on the other."""
    forward = one_way(source, target, translations)
    backward = one_way(target, source, _transposed(translations))
    left = sp.hstack([_csr(forward.left), _csr(backward.right.T)])
    right = sp.hstack([_csr(forward.right.T), _csr(backward.left)])
    return WeightedProduct(_csr(left), _csr(right).T, forward.source_mass, backward.source_mass)


def one_way(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return M_fe [n, m]: the idf-weighted share of the source's translatable words that the target translates."""
    links = ones(translations)
    known = np.asarray(links.sum(axis=1)).ravel() > 0
    weighted = scale_columns(source.present, idf(source) * known)
    translated = ones(_csr(target.present @ _transposed(links)))
    mass = np.asarray(weighted.sum(axis=1), np.float32).ravel()
    return WeightedProduct(weighted, translated.T, mass, np.zeros(target.counts.shape[0], np.float32))


def synonyms(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return BM25 [n, m] of the source's terms, where all translations of a term count as that term (Pirkola 1998)."""
    translated = _csr(target.counts @ ones(translations).T)
    lengths = np.asarray(target.counts.sum(axis=1), np.float32).ravel()
    return WeightedProduct(_query_weights(source, translated), _saturated(translated, lengths).T)


def synonyms_backward(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return BM25 of the target's terms on the source page, transposed back to [n, m]."""
    return synonyms(target, source, _transposed(translations)).swapped()


def cosine(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return the tf-idf cosine [n, m] of the translated source page; translations of a term share its mass."""
    logarithmic = _map(source.counts, lambda data: 1 + np.log(data))
    translated = scale_columns(_csr(logarithmic @ stochastic(translations)), idf(target))
    return WeightedProduct(unit_rows(translated), tfidf(target).T)


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
    return WeightedProduct(_rows(roots, 1 / np.maximum(total, 1)), expected.T)


def common(source: Terms, target: Terms) -> WeightedProduct:
    """Return the tf-idf cosine [n, m] over the terms of both vocabularies, with the target's idf."""
    shared = sorted(source.position.keys() & target.position.keys())
    left = source.counts[:, [source.position[t] for t in shared]]
    right = target.counts[:, [target.position[t] for t in shared]]
    del source, target  # their counts of n-grams are the largest part of a task
    weights = idf(Terms(tuple(shared), _csr(right)))
    return WeightedProduct(weighted_by(_csr(left), weights), weighted_by(_csr(right), weights).T)


def tfidf(terms: Terms) -> sp.csr_array:
    """Return (1 + ln tf) · idf in rows of unit length: float32 CSR [pages, v]."""
    return weighted_by(terms.counts, idf(terms))


def unit_rows(matrix: sp.csr_array) -> sp.csr_array:
    """Return the matrix [n, v] with every row scaled to unit length; empty rows stay empty."""
    norms = np.sqrt(np.asarray(_map(matrix, np.square).sum(axis=1), np.float32)).ravel()
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
    """Return the matrix as float32 CSR; the transpose of a CSC matrix is not copied."""
    result: sp.csr_array = sp.csr_array(matrix).astype(np.float32, copy=False)
    return result


def _transposed(matrix: SparseOrDense) -> sp.csr_array:
    return _csr(matrix.T)
