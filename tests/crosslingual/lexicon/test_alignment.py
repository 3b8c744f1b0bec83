"""Mapping word vectors onto each other: synthetic vectors with a known rotation, and slow oracles."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import orthogonal_procrustes

from indexes.arrays import normalised
from indexes.dtypes import Float32Array
from linker.crosslingual.lexicon.alignment import agreement, align, neighbours, procrustes, word_vectors
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.unsupervised import aligned_words
from tests.crosslingual.synthetic import twin

WORDS, SIZE, KNOWN = 400, 30, 60


def rotated(noise: float, seed: int = 0) -> tuple[Float32Array, Float32Array]:
    """Two sets of unit vectors, matched row by row; the second is the first, rotated, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(WORDS, SIZE)) * np.linspace(0.3, 1, SIZE)
    turn, _ = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))
    y = (x + noise * rng.normal(size=x.shape)) @ turn
    return normalised(x.astype(np.float32)), normalised(y.astype(np.float32))


DIAGONAL = np.stack([np.arange(WORDS)] * 2, axis=1)


def test_a_rotation_is_found_from_a_few_words() -> None:
    x, y = rotated(noise=0.05)
    found = sp.coo_array(align(x, y, DIAGONAL[:KNOWN]))
    assert found.nnz > 0.95 * WORDS
    assert (found.row == found.col).mean() > 0.99


def test_wrong_words_to_begin_with_are_outvoted() -> None:
    x, y = rotated(noise=0.05)
    start = DIAGONAL[:KNOWN].copy()
    start[: KNOWN // 3, 1] = np.roll(start[: KNOWN // 3, 1], 1)
    found = sp.coo_array(align(x, y, start))
    assert (found.row == found.col).mean() > 0.9


def test_agreement_tells_languages_that_fit_from_those_that_do_not() -> None:
    x, y = rotated(noise=0.05)
    other, _ = rotated(noise=0.05, seed=7)
    assert agreement(x, y, DIAGONAL[:KNOWN]) > 0.9
    assert agreement(x, other, DIAGONAL[:KNOWN]) < 0.1
    assert agreement(x, y, DIAGONAL[:3]) == 0
    # Fewer pairs than dimensions: a mapping that has seen the held-out ones fits them, whatever the vectors are.
    assert agreement(x, other, DIAGONAL[: SIZE - 5]) < 0.2


def test_nothing_to_begin_with_gives_nothing() -> None:
    x, y = rotated(noise=0.05)
    assert align(x, y, DIAGONAL[:0]).nnz == 0


def test_the_orthogonal_part_is_procrustes_solution() -> None:
    x, y = rotated(noise=0.2)
    left, right = procrustes(x, y)
    expected, _ = orthogonal_procrustes(x, y)
    unweighted = left / np.linalg.norm(left, axis=0) @ (right / np.linalg.norm(right, axis=0)).T
    np.testing.assert_allclose(unweighted, expected, atol=1e-3)


def test_neighbours_are_mutual_by_csls() -> None:
    rng = np.random.default_rng(3)
    x, y = (normalised(rng.normal(size=(n, 5)).astype(np.float32)) for n in (23, 31))
    cosines = x @ y.T
    near = [np.sort(cosines, axis=1)[:, -10:].mean(axis=1), np.sort(cosines, axis=0)[-10:].mean(axis=0)]
    csls = 2 * cosines - near[0][:, None] - near[1]
    expected = {
        (i, j)
        for i in range(23)
        for j in range(31)
        if csls[i, j] == csls[i].max() and csls[i, j] == csls[:, j].max()
    }
    pairs, strength = neighbours(x, y, 1.0, rng)
    assert {(i, j) for i, j in pairs.tolist()} == expected
    np.testing.assert_allclose(strength, [csls[i, j] for i, j in pairs], rtol=1e-4)


def test_words_of_the_same_passages_have_close_vectors() -> None:
    """Words 0, 1, 2 share passages, and so do 3, 4, 5; word 6 is too rare."""
    rng = np.random.default_rng(0)
    dense = np.zeros((200, 7), np.float32)
    for row in dense:
        row[rng.choice(3, 2, replace=False) + 3 * rng.integers(2)] = 1
    dense[:4, 6] = 1
    made = word_vectors(sp.csr_array(dense), size=2)
    assert made.words.tolist() == [0, 1, 2, 3, 4, 5]
    cosines = made.vectors @ made.vectors.T
    assert cosines[:3, :3].min() > 0.5 > cosines[:3, 3:].max()


def test_collections_that_share_no_string_have_no_pairs() -> None:
    corpus = twin(pages=60)
    pairs, share = aligned_words(AllEvidence(corpus.source, corpus.target))
    assert pairs == () and share == pytest.approx(0)
