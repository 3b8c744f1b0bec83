"""Weak scores between two collections, each a product of two matrices, so that blocks of all pairs are cheap.

A translation matrix [v source, v target] holds the weights of term translations. The scores over it are coverage (M of
Li & Gaussier), BM25 with translations as synonyms (Pirkola's structured queries) in both directions, a tf-idf cosine of
the translated page, and the likelihood of the source page under the target's translation model (Berger & Lafferty
1999). Each function below takes the `Terms` of n source and m target pages and returns a scorer of shape [n, m].
"""

from functools import cache

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float32Array
from indexes.text.scoring import lucene_idf
from linker.crosslingual.pages.pages import Terms, column_sizes
from linker.crosslingual.scoring.comparability import idf
from linker.crosslingual.scoring.products import SparseOrDense, Sum, WeightedProduct
from linker.crosslingual.scoring.sparse import (
    by_rows,
    csr,
    in_parts,
    map_values,
    ones,
    scale_columns,
    scale_rows,
    stochastic,
    times,
    unit_rows,
)

K1, B, K3 = 1.2, 0.6, 1.2
FROM_PAGE = 0.3  # share of words that the translation model draws from the page, not the collection


def coverage(source: Terms, target: Terms, translations: sp.csr_array, *, keep: bool = True) -> Sum:
    """Return idf-weighted M [n, m]: the share of both pages' translatable words with a translation on the other page.

    `keep`: whether to keep both products, so that they are computed once.
    """
    back = _transposed(translations)
    (x, source_mass), (y, target_mass) = _translatable(source, translations), _translatable(target, back)
    makers = (
        lambda: WeightedProduct(x, _translated(target, back).T),
        lambda: WeightedProduct(_translated(source, translations), y.T),
    )
    return Sum(tuple(map(cache, makers)) if keep else makers, source_mass, target_mass)


def one_way(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return M_fe [n, m]: the idf-weighted share of the source's translatable words that the target translates."""
    weighted, mass = _translatable(source, translations)
    translated = _translated(target, _transposed(translations))
    return WeightedProduct(weighted, translated.T, mass, np.zeros(target.counts.shape[0], np.float32))


def _translatable(terms: Terms, translations: sp.csr_array) -> tuple[sp.csr_array, Float32Array]:
    """Return the idf of each page's words that have a translation [n, v], and their sum [n]."""
    known = np.asarray(ones(translations).sum(axis=1)).ravel() > 0
    weighted = scale_columns(terms.present, idf(terms) * known)
    return weighted, np.asarray(weighted.sum(axis=1), np.float32).ravel()


def _translated(terms: Terms, translations: sp.csr_array) -> sp.csr_array:
    """Return 1 for each term that translates a word on the page: [n, v']."""
    translated = times(terms.present, ones(translations))
    translated.data[:] = 1
    return translated


def synonyms(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return BM25 [n, m] of the source's terms, counting all translations of a term as that term (Pirkola 1998)."""
    translated = times(target.counts, ones(translations).T)
    lengths = np.asarray(target.counts.sum(axis=1), np.float32).ravel()
    return WeightedProduct(_query_weights(source, translated), _saturated(translated, lengths).T)


def synonyms_backward(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return BM25 of the target's terms on the source page, transposed back to [n, m]."""
    return synonyms(target, source, _transposed(translations)).transpose()


def cosine(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return the tf-idf cosine [n, m] of the translated source page; translations of a term share its mass."""
    logarithmic = map_values(source.counts, lambda data: 1 + np.log(data))
    translated = scale_columns(times(logarithmic, stochastic(translations)), idf(target))
    return WeightedProduct(unit_rows(translated), tfidf(target).T)


def translation_model(source: Terms, target: Terms, translations: sp.csr_array) -> WeightedProduct:
    """Return the mean log ratio [n, m] of the source's words: the target's translation model vs. the collection.

    P(w | page) = .3 · Σ_v P(w | v) tf(v)/|page| + .7 · P(w) (Berger & Lafferty 1999); each word is weighted by the
    square root of its frequency.
    """
    length = np.asarray(target.counts.sum(axis=1), np.float32).ravel()
    shares = scale_rows(target.counts, 1 / np.maximum(length, 1))
    expected = times(shares, stochastic(_transposed(translations)))
    often = np.asarray(source.counts.sum(axis=0), np.float64).ravel() + 0.5
    ratio = FROM_PAGE / (1 - FROM_PAGE) * often.sum() / np.maximum(often, 0.5)
    expected = map_values(scale_columns(expected, ratio.astype(np.float32)), np.log1p)
    roots = map_values(source.counts, np.sqrt)
    total = np.asarray(roots.sum(axis=1), np.float32).ravel()
    return WeightedProduct(scale_rows(roots, 1 / np.maximum(total, 1)), expected.T)


def common(source: Terms, target: Terms) -> WeightedProduct:
    """Return the tf-idf cosine [n, m] over the terms of both vocabularies, with the target's idf."""
    columns, others = source.common(target)
    right, shared = target.counts[:, others], tuple(target.vocabulary[i] for i in others)
    del target  # frees memory: n-gram counts are the largest part of a task
    weights = idf(Terms(shared, right))
    right = weighted_by(right, weights)
    left = source.counts[:, columns]
    del source
    return WeightedProduct(weighted_by(left, weights), right.T)


def tfidf(terms: Terms) -> sp.csr_array:
    """Return (1 + ln tf) · idf in rows of unit length: float32 CSR [pages, v]."""
    return weighted_by(terms.counts, idf(terms))


def weighted_by(counts: sp.csr_array, weights: Float32Array) -> sp.csr_array:
    """Return (1 + ln tf) · weight, `weights` [v], in rows of unit length: float32 CSR [pages, v]."""

    def weighted(data: Float32Array, rows: slice, places: slice) -> Float32Array:
        columns, begins = counts.indices[places], counts.indptr[rows.start : rows.stop + 1] - places.start
        values = (1 + np.log(data)) * weights[columns]
        return unit_rows(
            sp.csr_array((values, columns, begins), shape=(len(begins) - 1, counts.shape[1]))
        ).data

    return in_parts(counts, weighted)


def _query_weights(source: Terms, translated: sp.csr_array) -> sp.csr_array:
    """Return saturated frequency times idf of each source term; idf counts the pages with any translation of it."""
    n = translated.shape[0]
    frequency = column_sizes(translated)
    weights = np.where(frequency > 0, lucene_idf(frequency, n), 0).astype(np.float32)
    return scale_columns(map_values(source.counts, lambda tf: tf * (K3 + 1) / (tf + K3)), weights)


def _saturated(counts: sp.csr_array, lengths: Float32Array) -> sp.csr_array:
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-6))
    return by_rows(counts, norm, lambda tf, own: tf * (K1 + 1) / (tf + own))


def _transposed(matrix: SparseOrDense) -> sp.csr_array:
    return csr(matrix.T)
