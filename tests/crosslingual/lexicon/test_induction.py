"""Lexicon induction: worked G², competition, the permutation threshold, and a corpus with a known dictionary."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from linker.crosslingual.lexicon.induction import (
    WordPairs,
    _associated,
    compete,
    g_squared,
    induce,
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
    found, chance = np.arange(1.0, 21), np.array([2.5, 5.5, 5.6])
    # From 1 on 20 are found and 3 by chance, from 5 on 16 and 2: too many; from 6 on 15 and none.
    assert threshold(found, chance) == 6
    assert threshold(np.array([1.0]), np.array([2.0])) == math.inf
    assert threshold(np.empty(0), chance) == math.inf


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
