"""Passages and what pages share on the surface."""

import numpy as np
import pytest
import scipy.sparse as sp

from linker.crosslingual.pages.pages import count_terms
from linker.crosslingual.pages.surface import letter_grams, mark_grams, romanise
from linker.crosslingual.scoring.passages import cut_passages, match_passages, passages_of


def test_passages_follow_lines() -> None:
    line = "a b c d e f g h i j"
    assert [len(p) for p in cut_passages("\n".join([line] * 7), str.split)] == [30, 30, 10]
    assert [len(p) for p in cut_passages(" ".join(["w"] * 100), str.split)] == [30, 30, 40]
    assert cut_passages("", str.split) == [[]]
    everything = [w for p in cut_passages(f"{line}\n{line * 9}\n\nx", str.split) for w in p]
    assert everything == f"{line} {line * 9} x".split()


def test_features_are_the_best_cosines_of_passages() -> None:
    a, b, c = (" ".join(f"{x}{i}" for i in range(30)) for x in "abc")
    sources, targets = [f"{a}\n{b}", ""], [f"{c}\n{b}", f"{a}\n{b}", c, ""]
    x, y = count_terms(sources, str.split), count_terms(targets, str.split)
    translations = sp.lil_array((len(x.vocabulary), len(y.vocabulary)), dtype=np.float32)
    for term, i in x.position.items():
        if term in y.position:
            translations[i, y.position[term]] = 1
    sides = passages_of(sources, str.split, x), passages_of(targets, str.split, y)
    matcher = match_passages(*sides, sp.csr_array(translations))
    found = matcher.features(np.array([0, 1]), np.array([[0, 1, 2, 3], [3, 2, 1, 0]]))
    assert matcher.names[:2] == ("passages.mean", "passages.best")
    np.testing.assert_allclose(found[0, 1], 1, atol=1e-5)  # both passages are there
    assert found[0, 0, 1] == pytest.approx(1, abs=1e-5)  # one is
    assert 0 < found[0, 0, 0] < 1
    np.testing.assert_allclose(found[0, 2:], 0)
    np.testing.assert_allclose(found[1], 0)  # an empty page has nothing in common with any


def test_names_are_romanised() -> None:
    assert romanise("Пушкин") == "pushkin"
    assert romanise("Şırnak, Müller, Ωmega") == "sirnak, muller, omega"
    assert "_pus" in letter_grams("Пушкин") and "_pus" in letter_grams("Pushkin")
    assert letter_grams("你好 ab 12345") == []


def test_marks_survive_translation() -> None:
    assert mark_grams("a, b。") == [",", ".", ",."]
    assert mark_grams("foo (12)\n") == mark_grams("бар （12）\n")
