"""Comparability over a bilingual lexicon (Li & Gaussier), binary or idf-weighted, and a cosine of translated vectors.

M(f, e) = [Σ_{w ∈ V(f)∩D_F} σ(w, e) + Σ_{v ∈ V(e)∩D_E} σ(v, f)] / (|V(f)∩D_F| + |V(e)∩D_E|), where σ(w, d) = 1 iff
d contains a translation of w. Both are exact: one sparse product per block and direction.
"""

from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from indexes.dtypes import BoolArray, Float32Array
from linker.crosslingual.pages.pages import Terms
from linker.crosslingual.scoring.products import Blocks
from linker.crosslingual.scoring.sparse import ones, scale_columns, stochastic, unit_rows
from linker.crosslingual.scoring.split_product import SplitProduct

Weighting = Literal["binary", "idf"]


def idf(terms: Terms) -> Float32Array:
    """Return ln((N + 1) / (df + 1)) for each term: float32 [v]; the background pages are also counted."""
    n, often = terms.counts.shape[0], terms.document_frequency
    if terms.background:
        n, often = n + terms.background[1], often + terms.background[0]
    return np.asarray(np.log((n + 1) / (often + 1)), np.float32)


def comparability(
    source: Terms,
    target: Terms,
    relation: csr_array,
    *,
    known: tuple[BoolArray, BoolArray] | None = None,
    weighting: Weighting = "idf",
) -> Blocks:
    """Return Li & Gaussier's M for two collections. `relation`: CSR [v source, v target], non-zero for translations.

    `known`: the terms that count in the denominator, bool [v source] and [v target] (`Lexicon.known`); by default the
    terms of the relation, which excludes words whose translations are on no page.
    `weighting`: with "idf", a hit counts the `idf` of its term in its own collection.
    """
    links = ones(relation)
    known_source, known_target = known or (_sums(links, 1) > 0, _sums(links, 0) > 0)
    w, v = (idf(source), idf(target)) if weighting == "idf" else (None, None)
    x, y = _weigh(_restrict(source, known_source), w), _restrict(target, known_target)
    forward = SplitProduct.of(x, ones(target.present @ links.T.tocsr()))
    backward = SplitProduct.of(_weigh(ones(source.present @ links), v), y)
    return Blocks((forward, backward), _sums(x, 1), _sums(_weigh(y, v), 1))


def translated_cosine(source: Terms, target: Terms, relation: csr_array) -> SplitProduct:
    """Return cosines of tf-idf vectors, (1 + ln tf) · idf of the targets, after translating the source pages.

    `relation`: CSR [v source, v target]. A term's mass is divided among its translations; without any, the term is
    dropped.
    """
    weights = idf(target)
    left = scale_columns(csr_array(_log_counts(source) @ stochastic(relation)), weights)
    return SplitProduct.of(unit_rows(left), unit_rows(scale_columns(_log_counts(target), weights)))


def _log_counts(terms: Terms) -> csr_array:
    counts = terms.counts
    data = (1 + np.log(counts.data)).astype(np.float32)
    return csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def _sums(matrix: csr_array, axis: int) -> Float32Array:
    return np.asarray(matrix.sum(axis=axis), np.float32).ravel()


def _restrict(terms: Terms, known: BoolArray) -> csr_array:
    """Return the pages' 0/1 rows over terms, restricted to `known` terms (bool [v])."""
    present = terms.present.copy()
    present.data *= known.astype(np.float32)[present.indices]
    present.eliminate_zeros()
    return present


def _weigh(matrix: csr_array, weights: Float32Array | None) -> csr_array:
    return matrix if weights is None else scale_columns(matrix, weights)
