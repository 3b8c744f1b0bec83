"""Lexicon induction: worked G², competition, the permutation threshold, and a corpus with a known dictionary."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import orthogonal_procrustes

from indexes.arrays import normalised
from indexes.dtypes import Float32Array
from linker.crosslingual.lexicon.alignment import agreement, align, neighbours, procrustes, word_vectors
from linker.crosslingual.lexicon.induction import (
    WordPairs,
    _associations,
    compete,
    distinctness,
    g_squared,
    induce,
    pairs_by_chance,
    threshold,
)
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.unsupervised import aligned_words
from tests.crosslingual.synthetic import twin, word


def test_g_squared_of_a_worked_table() -> None:
    # 10 pages: both words in 3, the first alone in 1, the second alone in 2, neither in 4.
    cells = [(3, 4 * 5), (1, 4 * 5), (2, 6 * 5), (4, 6 * 5)]
    expected = 2 * sum(o * math.log(o * 10 / e) for o, e in cells)
    got = g_squared(np.array([3.0]), np.array([4.0]), np.array([5.0]), 10)
    assert got[0] == pytest.approx(expected)
    assert g_squared(np.array([2.0]), np.array([4.0]), np.array([5.0]), 10)[0] == pytest.approx(0)


def test_competition_takes_the_strongest_first() -> None:
    pairs = WordPairs(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([9.0, 8.0, 7.0, 1.0]))
    kept = compete(pairs, most=1)
    assert list(zip(kept.source.tolist(), kept.target.tolist(), strict=True)) == [(0, 0), (1, 1)]
    assert len(compete(pairs, most=2).source) == 4


def test_the_threshold_allows_a_tenth_of_chance() -> None:
    found, chance, once = np.arange(1.0, 21), np.array([5.5, 2.5, 5.6]), np.ones(3)
    # At ≥ 1, 20 are found and 3 by chance; at ≥ 5, 16 and 2: too many; at ≥ 6, 15 and none.
    assert threshold(found, chance, once) == 6
    # At ≥ 5, 1.5 of 16 are expected by chance.
    assert threshold(found, chance, once / 2) == 1
    assert threshold(found, chance, np.array([1.0, 2, 1])) == 6
    assert threshold(np.array([1.0]), np.array([2.0]), np.ones(1)) == math.inf
    assert threshold(np.empty(0), chance, once) == math.inf


def test_distinctness_is_measured_against_the_strongest_rival() -> None:
    among = WordPairs(
        np.array([0, 0, 1, 1, 2, 3, 3]),
        np.array([0, 1, 0, 1, 2, 3, 4]),
        np.array([30.0, 10, 12, 20, 40, 9, 9]),
    )
    found = distinctness(among, among)
    # (0, 0) has the rivals 10 and 12, (0, 1) 30 and 20; (2, 2) has none, so 8 counts; (3, 3) and (3, 4) tie.
    assert found == pytest.approx([30 / 12, 10 / 30, 12 / 30, 20 / 12, 40 / 8, 1, 1])
    part = WordPairs(among.source[1:3], among.target[1:3], among.strength[1:3])
    assert distinctness(part, among) == pytest.approx(found[1:3])


def test_names_that_occur_on_the_same_pages_are_not_distinct() -> None:
    """The author and the translator of a manual appear on the same pages as all words of the manual."""
    pages = 40
    x, y = np.zeros((pages, 3), np.float32), np.zeros((pages, 3), np.float32)
    x[:20, 0] = y[:20, 0] = 1  # a word and its translation
    x[15:25, 1] = x[15:25, 2] = y[15:25, 1] = y[15:25, 2] = 1  # names and words of one collection
    found = induce(sp.csr_array(x), sp.csr_array(y)).toarray()
    assert found[0, 0] > 1.5
    assert found[1:, 1:].max() == pytest.approx(1)


def test_expected_pairs_are_the_mean_over_all_permutations() -> None:
    """Five links, all 120 permutations: the expectation is exact, for each word pair and for all pairs together."""
    rng = np.random.default_rng(3)
    x, y = (sp.csr_array((rng.random((5, 4)) < 0.5).astype(np.float32)) for _ in range(2))
    a, b = (np.asarray(m.sum(axis=0)).ravel().astype(np.int64) for m in (x, y))
    counted: list[float] = []
    for order in itertools.permutations(range(5)):
        both = (x.T @ y[list(order)]).toarray().astype(np.float64)
        strength = g_squared(both, a[:, None].astype(np.float64), b[None].astype(np.float64), 5)
        more = both * 5 > a[:, None] * b[None]
        counted.extend(strength[more & (both >= 1) & (strength >= 2)].tolist())
    values, expected = pairs_by_chance(a, b, 5, fewest=1, least=2.0)
    assert len(counted) > 100
    for least in (2.0, 3.0, 5.0):
        assert expected[values >= least].sum() == pytest.approx(sum(c >= least for c in counted) / 120)


def test_expected_pairs_of_many_links_agree_with_shuffled_ones() -> None:
    """2,000 links, words in up to half of them: shared classes and stepwise sums stay close to counts."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0.002, 0.4, 150) ** 2
    x, y = (sp.csr_array((rng.random((2000, 150)) < share).astype(np.float32)) for _ in range(2))
    a, b = (np.bincount(m.indices, minlength=150) for m in (x, y))
    _, expected = pairs_by_chance(a, b, 2000, fewest=3)
    counted = [len(_associations(x, y[rng.permutation(2000)]).strength) for _ in range(30)]
    assert expected.sum() == pytest.approx(np.mean(counted), abs=4 * np.std(counted) / 30**0.5 + 1)
    assert np.mean(counted) > 20


def test_it_finds_the_dictionary_and_nothing_in_shuffled_links() -> None:
    corpus = twin(pages=300, extra=0, vocabulary=300)
    x, y = corpus.source.terms, corpus.target.terms
    found = induce(x.present[corpus.links[:, 0]], y.present[corpus.links[:, 1]]).tocoo()
    names = [(x.vocabulary[i], y.vocabulary[j]) for i, j in zip(found.row, found.col, strict=True)]
    true = {(word(n, "source"), word(n, "target")) for n in range(300)}
    assert len(names) > 60
    assert sum(name in true for name in names) / len(names) > 0.8
    mixed = np.random.default_rng(0).permutation(corpus.links[:, 1])
    assert induce(x.present[corpus.links[:, 0]], y.present[mixed]).nnz < len(names) / 10


def test_words_that_avoid_each_other_are_no_pair() -> None:
    # Each word is in half of 100 pages: together in 4 instead of 25 is as significant as together in 46.
    x = np.zeros((100, 1), np.float32)
    apart, together = x.copy(), x.copy()
    x[:50], apart[46:96], together[4:54] = 1, 1, 1
    assert g_squared(np.array([4.0]), np.array([50.0]), np.array([50.0]), 100)[0] > 8
    assert len(_associations(sp.csr_array(x), sp.csr_array(apart)).strength) == 0
    assert len(_associations(sp.csr_array(x), sp.csr_array(together)).strength) == 1


def test_few_links_teach_nothing() -> None:
    empty = sp.csr_array(np.zeros((2, 5), np.float32))
    assert induce(empty, empty).nnz == 0


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
