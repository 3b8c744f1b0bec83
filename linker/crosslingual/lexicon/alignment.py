"""A dictionary without supervision: word vectors of each language, learned from its own pages, mapped onto each other.

The vectors are singular vectors of positive pointwise mutual information (Levy & Goldberg 2014) between words that
share passages. Words that are spelt alike, such as names and numerals, start the mapping; then an orthogonal map
(Procrustes) and a dictionary of mutual nearest neighbours improve each other, with part of the similarities dropped at
random so that early mistakes are not final (Artetxe, Labaka & Agirre 2018). Neighbours are corrected for hubs by CSLS
(Conneau et al. 2018).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from indexes.arrays import normalised
from indexes.dtypes import Float32Array, Int64Array

SIZE = 200  # dimensions of a vector
RAREST = 5  # minimum number of passages that contain a word; rarer words get no vector
MOST = 6000  # words per language, the most frequent ones
NEAREST = 10  # neighbours in CSLS
KEEP = (0.1, 0.2, 0.4, 0.8, 1.0)  # shares of the similarities to keep, from the first rounds to the last
ROUNDS = 3  # rounds with each share
STEPS = len(KEEP) * ROUNDS
FOLDS = 5
BLOCK = 1024


@dataclass(frozen=True, eq=False)
class ColumnVectors:
    """Vectors of some words: `words` int64 [w], columns of the passages' vocabulary, and float32 `vectors` [w, d]."""

    words: Int64Array
    vectors: Float32Array


def word_vectors(passages: sp.csr_array, size: int = SIZE, *, rarest: int = RAREST) -> ColumnVectors:
    """Return unit vectors of the words in 0/1 `passages` [p, v], from the words that share passages with them.

    Words in fewer than `rarest` passages are left out; the vectors have at most `size` dimensions, and zero mean.
    """
    from scipy.sparse.linalg import svds

    often = np.bincount(passages.indices, minlength=passages.shape[1])
    words = np.flatnonzero(often >= rarest)
    words = np.sort(words[np.argsort(-often[words], kind="stable")][:MOST])
    counts = sp.csr_array(passages[:, words]).astype(np.float32)
    joint = sp.coo_array(counts.T @ counts)
    distinct = joint.row != joint.col
    row, column, count = joint.row[distinct], joint.col[distinct], joint.data[distinct]
    total = np.bincount(row, count, len(words))
    # Contexts are smoothed by the power .75: otherwise rare words have the highest information.
    context = total**0.75
    information = np.log(
        np.maximum(count * context.sum() / np.maximum(total[row] * context[column], 1e-9), 1)
    )
    matrix = sp.csr_array((information.astype(np.float32), (row, column)), shape=(len(words), len(words)))
    size = min(size, len(words) - 1)
    if size < 1:
        return ColumnVectors(words[:0], np.zeros((0, 1), np.float32))
    left, values, _ = svds(matrix, k=size, v0=np.ones(len(words), np.float32))
    vectors = normalised((left * np.sqrt(values)).astype(np.float32))
    return ColumnVectors(words, normalised(vectors - vectors.mean(axis=0)))


def align(
    source: Float32Array,
    target: Float32Array,
    pairs: Int64Array,
    *,
    seed: int = 0,
    advance: Callable[[int], object] = lambda count: None,
) -> sp.csr_array:
    """Return the words that are each other's nearest neighbours after mapping: CSR [w source, w target] of CSLS + 2.

    `source` [w, d] and `target` [w', d] have unit rows; `pairs` int64 [p, 2] start the mapping; without any,
    there are no neighbours. `advance` is called with 1 after each of the `STEPS`.
    """
    shape = (len(source), len(target))
    size = min(source.shape[1], target.shape[1])
    if not len(pairs):
        return sp.csr_array(np.zeros(shape, np.float32))
    x, y = source[:, -size:], target[:, -size:]
    rng = np.random.default_rng(seed)
    start = pairs
    for keep in KEEP:
        for _ in range(ROUNDS):
            x_map, y_map = procrustes(x[pairs[:, 0]], y[pairs[:, 1]])
            found, strength = neighbours(x @ x_map, y @ y_map, keep, rng)
            pairs = np.concatenate([start, found])
            advance(1)
    rows, columns = found.T
    return sp.csr_array((strength + 2, (rows, columns)), shape=shape)


def agreement(
    source: Float32Array,
    target: Float32Array,
    pairs: Int64Array,
    *,
    seed: int = 0,
    advance: Callable[[int], object] = lambda count: None,
) -> float:
    """Return the share of held-out `pairs` (int64 [p, 2]) that a mapping learned from the other pairs recovers.

    It shows whether the two languages' vectors match at all: after a wrong mapping it is near 0. `advance` is as in
    `align`.
    """
    order = np.random.default_rng(seed).permutation(len(pairs))
    held, rest = np.split(order, [len(pairs) // FOLDS])
    if not len(held):
        return 0.0
    # A word that is spelt like a held-out one would give it away.
    rest = rest[~np.isin(pairs[rest, 0], pairs[held, 0]) & ~np.isin(pairs[rest, 1], pairs[held, 1])]
    translations = align(source, target, pairs[rest], seed=seed, advance=advance)
    return float(np.mean([translations[s, t] > 0 for s, t in pairs[held].tolist()]))


def procrustes(x: Float32Array, y: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Return the orthogonal maps of `x` and `y` [p, d] into a common space, both [d, d], that bring the pairs closest.

    The directions in which the pairs agree most are weighted most: each side is scaled by the root of the singular
    value (symmetric re-weighting, Artetxe et al. 2018).
    """
    u, s, vt = np.linalg.svd(x.T @ y, full_matrices=False)
    root = np.sqrt(s / max(float(s[0]), 1e-9))
    return np.asarray(u * root, np.float32), np.asarray(vt.T * root, np.float32)


def neighbours(
    x: Float32Array, y: Float32Array, keep: float, rng: np.random.Generator
) -> tuple[Int64Array, Float32Array]:
    """Return pairs of words that are mutual nearest neighbours by CSLS, int64 [p, 2], and their CSLS, float32 [p].

    CSLS is twice the cosine, less the mean cosines of both words with their ten nearest neighbours. A random share
    1 − `keep` of the cosines is hidden.
    """
    x, y = normalised(x), normalised(y)
    near_x, near_y = _near(x, y), _near(y, x)
    best, value = np.zeros(len(x), np.int64), np.zeros(len(x), np.float32)
    back, back_value = np.zeros(len(y), np.int64), np.full(len(y), -np.inf, np.float32)
    for begin in range(0, len(x), BLOCK):
        part = 2 * (x[begin : begin + BLOCK] @ y.T) - near_x[begin : begin + BLOCK, None] - near_y
        if keep < 1:
            part[rng.random(part.shape, np.float32) >= keep] = -np.inf
        rows = slice(begin, begin + len(part))
        best[rows], value[rows] = part.argmax(axis=1), part.max(axis=1)
        better = part.max(axis=0) > back_value
        back[better] = begin + part[:, better].argmax(axis=0)
        back_value[better] = part[:, better].max(axis=0)
    mutual = np.flatnonzero((back[best] == np.arange(len(x))) & np.isfinite(value))
    return np.stack([mutual, best[mutual]], axis=1), value[mutual]


def _near(x: Float32Array, y: Float32Array) -> Float32Array:
    """Return the mean cosine of each row of `x` [n, d] with its nearest rows of `y` [m, d]: float32 [n]."""
    k = min(NEAREST, len(y))
    parts = []
    for begin in range(0, len(x), BLOCK):
        cosines = x[begin : begin + BLOCK] @ y.T
        parts.append(np.partition(cosines, len(y) - k, axis=1)[:, len(y) - k :].mean(axis=1))
    return np.concatenate(parts)
