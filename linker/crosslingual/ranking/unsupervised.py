"""Word pairs without a dictionary or links: the word vectors of both collections, mapped onto each other."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Int64Array
from linker.corpora.dictionaries import Pair
from linker.crosslingual.lexicon.alignment import ColumnVectors, agreement, align, word_vectors
from linker.crosslingual.ranking.evidence import AllEvidence

# minimum share of held-out identical words that the mapping recovers; below it, no pair is returned
AGREEMENT = 0.2
LEAST = 0.2  # minimum CSLS of a word pair
STRAIGHT = 2.0  # constant that `align` adds to CSLS


def aligned_words(
    evidence: AllEvidence,
    *,
    least_agreement: float = AGREEMENT,
    seed: int = 0,
    advance: Callable[[int], object] = lambda count: None,
) -> tuple[tuple[Pair, ...], float]:
    """Return pairs of stems that translate each other, and the share of held-out identical words recovered.

    Words that are spelt alike start the mapping. No pairs are returned if the mapping recovers less than
    the share `least_agreement` of the held-out words, as happens in small collections. `advance` is called with 1
    after each of twice `STEPS`.
    """
    x, y = (word_vectors(passages.present) for passages in evidence.passages)
    start = _within(evidence.spelling, x, y)
    share = agreement(x.vectors, y.vectors, start, seed=seed, advance=advance)
    if share < least_agreement or not len(start):
        return (), share
    found = sp.coo_array(align(x.vectors, y.vectors, start, seed=seed, advance=advance))
    strong = found.data >= LEAST + STRAIGHT
    sources, targets = x.words[found.row[strong]], y.words[found.col[strong]]
    names = evidence.source_terms.vocabulary, evidence.target_terms.vocabulary
    pairs = zip(sources.tolist(), targets.tolist(), strict=True)
    return tuple((names[0][s], names[1][t]) for s, t in pairs), share


def _within(translations: sp.csr_array, x: ColumnVectors, y: ColumnVectors) -> Int64Array:
    """Return those word pairs of a matrix [v source, v target] that have vectors, as rows of `x` and `y`: [p, 2]."""
    part = sp.coo_array(translations[x.words][:, y.words])
    return np.stack([part.row, part.col], axis=1).astype(np.int64)
