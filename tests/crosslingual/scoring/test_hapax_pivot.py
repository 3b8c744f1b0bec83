"""Hapaxes, the pigeonhole and the pivot: the worked numbers, and which words are hapaxes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.crosslingual.scoring.assignment import greedy, pigeonhole
from linker.crosslingual.scoring.candidates import nearest
from linker.crosslingual.scoring.hapax import HapaxRules, shared_hapaxes
from linker.crosslingual.scoring.pivot import Pivoted
from tests.crosslingual.tiny import Given, numbered, pages

F = pages(
    {
        "f1": "Zidane Marseille Juventus Zidane finale",
        "f2": "Juventus finale Platini",
        "f3": "Marseille Juventus",
    }
)
E = pages({"e1": "Marseille Juventus striker final", "e2": "Platini Juventus coach"})


def test_worked_numbers() -> None:
    scorer = shared_hapaxes(F, E)
    scores = scorer.block(0, 3)
    assert np.floor(scores).tolist() == [[2, 1], [1, 2], [2, 1]]
    dice = (scores - np.floor(scores)) * 2
    assert (dice[2, 0], dice[1, 1], dice[0, 0]) == pytest.approx((2 / 3, 2 / 3, 4 / 7))
    found = nearest(scorer, F.ids, E.ids).candidates
    partner = greedy(found, F.ids, E.ids)
    assert partner.tolist() == [-1, 1, 0]
    assert pigeonhole(found, partner).targets.tolist() == [[0, 1], [1, 0], [0, 1]]


def test_pivot_filters_and_boosts() -> None:
    direct = shared_hapaxes(F, E)
    through = Given([[3.0], [0.0], [0.0]])  # n(f1, g1) = 3; f2, f3 share nothing with g1
    links = np.array([[0, 0]])  # g1 is linked to e1
    filtered = Pivoted(direct, through, links, "filter").block(0, 3)
    assert np.floor(filtered).tolist() == [[5, 0], [0, 0], [0, 0]]
    boosted = Pivoted(direct, through, links, "boost").block(0, 3)
    assert np.floor(boosted).tolist() == [[5, 1], [1, 2], [2, 1]]


def test_support_is_the_best_of_a_targets_pivots_and_whole() -> None:
    through = Given([[2.9, 1.2, 4.5]])
    pivoted = Pivoted(Given([[0.0, 0.0, 0.0]]), through, np.array([[1, 2], [0, 2], [2, 0]]), "boost")
    assert pivoted.support(0, 1).tolist() == [[4, 0, 2]]
    assert Pivoted(Given([[1.0]]), through, np.empty((0, 2), np.int64)).block(0, 1).tolist() == [[0]]


@pytest.mark.parametrize(
    ("rules", "text", "found"),
    [
        (HapaxRules(), "Once, «TWICE» twice (x1234) abc", ["once", "x1234"]),
        (HapaxRules(strip=False), "once, once ab", ["once,", "once"]),
        (HapaxRules(lower=False), "Word word", ["Word", "word"]),
        (HapaxRules(digits=False), "word 12345 ab12", ["word"]),
        (HapaxRules(min_length=2), "ab c", ["ab"]),
        (HapaxRules(transliterate=True), "Москва", ["moskva"]),
        (HapaxRules(ngrams=3), "paris", ["par", "ari", "ris"]),
        (HapaxRules(), "---- ....", []),
        (HapaxRules(), "", []),
    ],
)
def test_what_is_a_hapax(rules: HapaxRules, text: str, found: list[str]) -> None:
    assert rules.find(text) == found


WORDS = st.lists(
    st.lists(st.sampled_from(["alpha", "beta!", "gamma", "delta", "ab"])).map(" ".join),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(WORDS, WORDS)
def test_counts_equal_the_sets(left: list[str], right: list[str]) -> None:
    found = shared_hapaxes(numbered(left, "s"), numbered(right, "t")).block(0, len(left))
    sets = [[set(HapaxRules().find(text)) for text in side] for side in (left, right)]
    for i, s in enumerate(sets[0]):
        for j, t in enumerate(sets[1]):
            n = len(s & t)
            assert found[i, j] == pytest.approx(n + (n / (len(s) + len(t)) if n else 0))
