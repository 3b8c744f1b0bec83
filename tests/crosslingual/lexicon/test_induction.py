"""Lexicon induction: worked G², competition, the permutation threshold, and a corpus with a known dictionary."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from linker.crosslingual.lexicon.induction import (
    WordPairs,
    _associated,
    compete,
    distinctness,
    g_squared,
    induce,
    pairs_by_chance,
    threshold,
)
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
    counted = [len(_associated(x, y[rng.permutation(2000)]).strength) for _ in range(30)]
    assert expected.sum() == pytest.approx(np.mean(counted), abs=4 * np.std(counted) / 30**0.5 + 1)
    assert np.mean(counted) > 20


def test_the_order_of_links_does_not_matter() -> None:
    corpus = twin(pages=100, extra=0, vocabulary=100)
    x, y = corpus.source.terms.present, corpus.target.terms.present
    first = induce(x[corpus.links[:, 0]], y[corpus.links[:, 1]])
    links = np.random.default_rng(0).permutation(corpus.links)
    assert first.nnz and abs(induce(x[links[:, 0]], y[links[:, 1]]) - first).max() < 1e-3


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
    assert len(_associated(sp.csr_array(x), sp.csr_array(apart)).strength) == 0
    assert len(_associated(sp.csr_array(x), sp.csr_array(together)).strength) == 1


def test_few_links_teach_nothing() -> None:
    empty = sp.csr_array(np.zeros((2, 5), np.float32))
    assert induce(empty, empty).nnz == 0
