"""Evidence for pairs in two languages, which share hardly any words: how clearly each document is nearest to the other.

An encoder's cosines of translations are high in some languages and subjects and low in others, so they are compared
with the cosines of third documents in the same language, a margin as in Artetxe and Schwenk, "Margin-based parallel
corpus mining with multilingual sentence embeddings" (2019).
"""

from collections.abc import Sequence

import numpy as np

from indexes.dtypes import Float64Array, Int64Array
from linker.corpora.languages import guess_language

ROUNDS = 100  # rounds of EM
# EM starts from the share of same-story pairs in training, which counts as much as this number of pairs.
EXPECTED = 40
LISTED = 10  # this many nearest documents by vectors are always candidates


def language_of(text: str) -> str:
    """Return the language of a text; "" if it cannot be determined."""
    return guess_language([text]) or ""


def number_languages(names: Sequence[str]) -> Int64Array:
    """Return a number from 0 for each language, int64 [n]; −1 for ""."""
    number = {name: i for i, name in enumerate(sorted({*names} - {""}))}
    return np.array([number.get(name, -1) for name in names], np.int64)


def leads(
    one: Int64Array,
    other: Int64Array,
    near: Float64Array,
    languages: Int64Array,
    pairs: Int64Array,
    cosine: Float64Array,
) -> Float64Array:
    """Return by how much each document of a pair leads the other's candidates: float64 [m, 2], the smaller lead first.

    `one` int64 [d] found `other` [d], and the cosine of their vectors is `near` [d]; `languages` int64 [n] of the
    documents. The lead of j for i is the `cosine` of the pair minus that of i and the nearest third document in j's
    language or, if none is near enough, that of i and its last document by vectors. The unit is the median difference
    between a document's first and last cosine. If one of the two has no candidates, the other's lead counts twice.
    """
    kinds = int(languages.max(initial=0)) + 2
    last, unit = _ends(one, near, len(languages))
    of = one * kinds + languages[other] + 1
    order = np.lexsort((-near, of))
    of, other, near = of[order], np.append(other[order], -1), np.append(near[order], -np.inf)

    def lead(i: Int64Array, j: Int64Array) -> Float64Array:
        key = i * kinds + languages[j] + 1
        at = np.searchsorted(of, key)
        at = np.minimum(at + (other[at] == j), len(of))
        third = np.where(at < np.searchsorted(of, key, "right"), near[at], -np.inf)
        return np.asarray((cosine - np.maximum(third, last[i])) / unit)

    both = lead(*pairs.T), lead(*pairs.T[::-1])
    return np.stack([np.fmin(*both), np.fmax(*both)], axis=1)


def _ends(one: Int64Array, near: Float64Array, count: int) -> tuple[Float64Array, float]:
    """Return each document's cosine with its last candidate by vectors, [n] (NaN: none), and the unit of leads."""
    near = near[np.lexsort((-near, one))]
    sizes = np.bincount(one, minlength=count)
    begins, some = np.cumsum(sizes) - sizes, sizes > 0
    last = np.full(count, np.nan)
    last[some] = near[(begins + np.minimum(sizes, LISTED) - 1)[some]]
    spread = near[begins[some]] - last[some]
    return last, max(float(np.median(spread)), 1e-9) if len(spread) else 1.0


def change_of_odds(odds: Float64Array, share: float) -> float:
    """Return what to add to the log odds of pairs [m] if their share of same-story pairs differs from training.

    A corpus of separate stories in each language has hardly any same-story pairs; a corpus of translations has many.
    The share is estimated by EM from the probabilities (Saerens, Latinne and Decaestecker, "Adjusting the outputs of a
    classifier to new a priori probabilities", 2002), with `share` as a prior that weighs as much as EXPECTED pairs.
    """
    from scipy.special import expit, logit

    found = share
    for _ in range(ROUNDS):
        probable = expit(odds + logit(found) - logit(share))
        found = (probable.sum() + EXPECTED * share) / (len(odds) + EXPECTED)
    return float(logit(found) - logit(share))
