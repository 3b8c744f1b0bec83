"""Hapaxes, the pigeonhole and the pivot: the worked numbers, and which words are hapaxes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from linker.crosslingual.lexicon.lexicon import Lexicon, from_pairs, identical
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring import split_product
from linker.crosslingual.scoring.assignment import greedy, pigeonhole
from linker.crosslingual.scoring.candidates import nearest
from linker.crosslingual.scoring.comparability import comparability, translated_cosine
from linker.crosslingual.scoring.hapax import HapaxRules, shared_hapaxes
from linker.crosslingual.scoring.pivot import Pivoted
from linker.crosslingual.scoring.split_product import SplitProduct
from tests.crosslingual.tiny import Given, numbered, pages, slow_idf, slow_m

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
        (HapaxRules(digits=False), "word 12345 ab12", ["word"]), (HapaxRules(min_length=2), "ab c", ["ab"]),
        (HapaxRules(transliterate=True), "Москва", ["moskva"]),
        (HapaxRules(ngrams=3), "paris", ["par", "ari", "ris"]), (HapaxRules(), "---- ....", []),
        (HapaxRules(), "", []),
    ],
)  # fmt: skip
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


PAIRS = [
    ("chat", "cat"), ("chien", "dog"), ("maison", "house"), ("maison", "home"), ("banque", "bank"), ("rive", "bank"),
]  # fmt: skip
FRENCH = numbered(["chat maison banque xyz"], "f", "fr")
ENGLISH = numbered(["cat house home garden", "bank dog", "garden"], "e", "en")


def lexicon(pairs: list[tuple[str, str]]) -> Lexicon:
    return from_pairs(pairs, FRENCH.language, ENGLISH.language)


def scores(source: Pages, target: Pages, words: Lexicon, **options: str) -> np.ndarray:
    relation = words.relation(source.terms, target.terms)
    known = words.known(source.terms, target.terms)
    scorer = comparability(source.terms, target.terms, relation, known=known, **options)  # type: ignore[arg-type] # literals
    return scorer.block(0, len(source))


def test_worked_numbers_of_comparability() -> None:
    words = lexicon(PAIRS)
    assert scores(FRENCH, ENGLISH, words, weighting="binary")[0] == pytest.approx([5 / 6, 2 / 5, 0])


def test_nothing_known_scores_zero_and_is_no_nan() -> None:
    assert scores(FRENCH, ENGLISH, Lexicon({})).tolist() == [[0, 0, 0]]


TEXTS = st.lists(st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee", "ff"])), min_size=1, max_size=6)
LINKS = st.sets(st.tuples(*[st.sampled_from(["aa", "bb", "cc", "dd", "ee", "zz"])] * 2))


@settings(deadline=None)
@given(TEXTS, TEXTS, LINKS, st.booleans())
def test_equals_the_slow_definition(
    left: list[list[str]], right: list[list[str]], links: set[tuple[str, str]], weighted: bool
) -> None:
    source, target = (numbered([" ".join(t) for t in side], "p") for side in (left, right))
    found = scores(
        source, target, Lexicon(dict.fromkeys(links, 1.0)), weighting="idf" if weighted else "binary"
    )
    sets = [[set(t) for t in side] for side in (left, right)]
    weights = (slow_idf(sets[0]), slow_idf(sets[1])) if weighted else None
    slow = [[slow_m(f, e, links, weights) for e in sets[1]] for f in sets[0]]
    assert np.allclose(found, slow, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 1))
def test_split_product_is_the_product_wherever_it_is_split(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    left = csr_array(random_array((7, 30), density=0.3, rng=rng, dtype=np.float32))
    right = csr_array(random_array((9, 30), density=0.3, rng=rng, dtype=np.float32))
    whole = (left @ right.T).toarray()
    product = SplitProduct.of(left, right, share)
    assert product.shape == (7, 9)
    assert np.allclose(product.block(2, 6), whole[2:6], atol=1e-6)
    chosen = rng.permutation(9)[:6]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_product, "TILE", 4)
        part = SplitProduct.of(left, right, share, chosen)
    assert part.shape == (7, 6)
    assert np.allclose(part.block(2, 6), whole[2:6, chosen], atol=1e-6)


def test_cosine_splits_mass_over_translations() -> None:
    source, target = (
        numbered(["chat", "maison"], "f"),
        numbered(["cat", "house", "home", "cat house", "other"], "e"),
    )
    words = Lexicon({("chat", "cat"): 1.0, ("maison", "house"): 1.0, ("maison", "home"): 1.0})
    cosines = translated_cosine(source.terms, target.terms, words.relation(source.terms, target.terms)).block(
        0, 2
    )
    cat, house, home = np.log(6 / 3), np.log(6 / 3), np.log(6 / 2)
    length = np.hypot(house / 2, home / 2)
    assert cosines[0] == pytest.approx([1, 0, 0, cat / np.hypot(cat, house), 0])
    expected = [house / 2 / length, home / 2 / length, house / 2 * house / length / np.hypot(cat, house)]
    assert cosines[1] == pytest.approx([0, *expected, 0])


def test_a_word_of_two_translations_counts_as_much_as_a_word_of_one() -> None:
    source, target = numbered(["chat maison"], "f"), numbered(["cat", "house", "home", "other"], "e")
    words = Lexicon({("chat", "cat"): 1.0, ("maison", "house"): 1.0, ("maison", "home"): 1.0})
    relation = words.relation(source.terms, target.terms)
    cosines = translated_cosine(source.terms, target.terms, relation).block(0, 1)[0]
    assert cosines == pytest.approx(np.array([1, 0.5, 0.5, 0]) / np.sqrt(1.5))  # all idf are equal


def test_identical_strings_match_as_far_as_both_stems_reach() -> None:
    source, target = (
        numbered(["KOMUT linux librarycall ısı"], "t", "tr"),
        numbered(["Linux library isi komut"], "e", "en"),
    )
    links = identical(source.terms, target.terms, (source.language, target.language)).links
    assert set(links) == {("linux", "linux"), ("komut", "komut"), ("librar", "library"), ("ısı", "isi")}


def test_names_that_finnish_stems_would_shorten_match_in_both_directions() -> None:
    finnish, english = (numbered(["Nokia update format linux"], x, y) for x, y in (("s", "fi"), ("t", "en")))
    shortened = {"nokia", "update", "format"} - {*finnish.terms.vocabulary}
    assert len(shortened) == 3
    for source, target in ((finnish, english), (english, finnish)):
        links = identical(source.terms, target.terms, (source.language, target.language)).links
        assert len(links) == 4
