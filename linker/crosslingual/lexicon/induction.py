"""A lexicon from linked pages: words that keep company across links, as many as a permutation test allows.

For each pair of words the 2 × 2 counts of linked pages give G² = 2 Σ O ln(O/E) (Dunning 1993); competitive linking
(Melamed 2000) keeps the strongest pairs, a few per word; the threshold is the lowest G² at which shuffled links yield
at most a tenth as many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float64Array, Int64Array

MIN_TOGETHER = 3  # linked pages that must hold both words
MAX_SHARE = 0.5  # of linked pages; a word of more says nothing
MAX_LINKS = 3  # translations of a word, each way
FALSE_SHARE = 0.1  # estimated share of false pairs among those kept
LEAST = 8.0  # G² below which no pair was ever kept
BLOCK = 512  # source words counted at once


@dataclass(frozen=True, eq=False)
class WordPairs:
    """Word pairs: source columns, target columns and G², three arrays of one length, strongest first."""

    source: Int64Array
    target: Int64Array
    strength: Float64Array


def induce(source: sp.csr_array, target: sp.csr_array, *, seed: int = 0) -> sp.csr_array:
    """Return which words translate which: CSR [v source, v target] holding G².

    `source` and `target` are 0/1 matrices of linked pages, row i linked to row i. Too few links give an empty matrix.
    """
    n = source.shape[0]
    left, right = _usable(source, n), _usable(target, n)
    x, y = sp.csr_array(source[:, left]), sp.csr_array(target[:, right])
    found = compete(_associated(x, y))
    chance = compete(_associated(x, y[np.random.default_rng(seed).permutation(n)]))
    kept = found.strength >= threshold(found.strength, chance.strength)
    rows, columns = left[found.source[kept]], right[found.target[kept]]
    shape = (source.shape[1], target.shape[1])
    return sp.csr_array((found.strength[kept].astype(np.float32), (rows, columns)), shape=shape)


def threshold(found: Float64Array, chance: Float64Array) -> float:
    """Return the lowest strength at which chance finds at most a tenth as many pairs; infinity where there is none."""
    found, chance = np.sort(found), np.sort(chance)
    by_chance = len(chance) - np.searchsorted(chance, found)
    allowed = by_chance <= FALSE_SHARE * (len(found) - np.searchsorted(found, found))
    return float(found[allowed.argmax()]) if allowed.any() else float("inf")


def compete(pairs: WordPairs, most: int = MAX_LINKS) -> WordPairs:
    """Take pairs from the strongest down, while both words have fewer than `most` partners."""
    order = np.lexsort((pairs.target, pairs.source, -pairs.strength))
    used_source: dict[int, int] = {}
    used_target: dict[int, int] = {}
    kept = []
    for i, s, t in zip(
        order.tolist(), pairs.source[order].tolist(), pairs.target[order].tolist(), strict=True
    ):
        if used_source.get(s, 0) < most and used_target.get(t, 0) < most:
            used_source[s] = used_source.get(s, 0) + 1
            used_target[t] = used_target.get(t, 0) + 1
            kept.append(i)
    chosen = np.array(kept, np.int64)
    return WordPairs(pairs.source[chosen], pairs.target[chosen], pairs.strength[chosen])


def _usable(present: sp.csr_array, n: int) -> Int64Array:
    frequency = np.bincount(present.indices, minlength=present.shape[1])
    return np.flatnonzero((frequency >= MIN_TOGETHER) & (frequency <= MAX_SHARE * n))


def _associated(x: sp.csr_array, y: sp.csr_array) -> WordPairs:
    """All pairs that meet often enough, more often than by chance and with G² of at least 8."""
    n = x.shape[0]
    often_x = np.bincount(x.indices, minlength=x.shape[1]).astype(np.float64)
    often_y = np.bincount(y.indices, minlength=y.shape[1]).astype(np.float64)
    words, pages = x.T.tocsr().astype(np.int32), y.astype(np.int32)
    parts = []
    for begin in range(0, words.shape[0], BLOCK):
        counts = words[begin : begin + BLOCK] @ pages
        both, columns = counts.data, counts.indices
        rows = np.repeat(np.arange(begin, begin + counts.shape[0]), np.diff(counts.indptr))
        enough = (both >= MIN_TOGETHER) & (both * float(n) > often_x[rows] * often_y[columns])
        rows, columns, both = rows[enough], columns[enough], both[enough]
        strength = g_squared(both.astype(np.float64), often_x[rows], often_y[columns], n)
        strong = strength >= LEAST
        parts.append((rows[strong].astype(np.int64), columns[strong].astype(np.int64), strength[strong]))
    if not parts:
        return WordPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    rows, columns, strength = (np.concatenate([p[i] for p in parts]) for i in range(3))
    return WordPairs(rows, columns, strength)


def g_squared(both: Float64Array, often_x: Float64Array, often_y: Float64Array, n: int) -> Float64Array:
    """Return 2 Σ O ln(O/E) over the four cells: pages with both words, with one, and with neither."""
    total = np.zeros_like(both)
    for observed, expected in (
        (both, often_x * often_y),
        (often_x - both, often_x * (n - often_y)),
        (often_y - both, (n - often_x) * often_y),
        (n - often_x - often_y + both, (n - often_x) * (n - often_y)),
    ):
        share = np.where(observed > 0, observed * n / np.maximum(expected, 1e-12), 1.0)
        total += observed * np.log(share)
    return 2 * total
