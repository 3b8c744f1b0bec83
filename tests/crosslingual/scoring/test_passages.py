"""Passages and surface features that pages share."""

import numpy as np
import pytest
import scipy.sparse as sp

from linker.crosslingual.pages.pages import count_terms
from linker.crosslingual.pages.surface import letter_grams, mark_grams, romanise
from linker.crosslingual.scoring.passages import PassageMatcher, cut_passages, match_passages, passages_of


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
    np.testing.assert_allclose(found[0, 1], 1, atol=1e-5)  # both passages are present
    assert found[0, 0, 1] == pytest.approx(1, abs=1e-5)  # one is present
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


def test_many_pages_together_have_the_features_of_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i:02}" for i in range(40)]

    def pages(n: int) -> list[str]:
        return [
            "\n".join(" ".join(rng.choice(words, 35)) for _ in range(rng.integers(1, 9))) for _ in range(n)
        ]

    x, y = (passages_of(side, str.split, count_terms(side, str.split)) for side in (pages(7), pages(9)))
    matcher = match_passages(x, y, sp.csr_array((rng.random((40, 40)) < 0.1).astype(np.float32)))
    rows, candidates = np.array([3, 0, 6, 2, 5]), rng.permuted(np.tile(np.arange(9), (5, 1)), axis=1)[:, :4]
    monkeypatch.setattr("linker.crosslingual.scoring.passages.PAGES", 2)
    found = matcher.features(rows, candidates)
    for i, row in enumerate(rows.tolist()):
        for j, column in enumerate(candidates[i].tolist()):
            np.testing.assert_allclose(found[i, j], one_pair(matcher, row, column), rtol=1e-5, atol=1e-6)


def one_pair(matcher: PassageMatcher, row: int, column: int) -> list[float]:
    x, y = matcher.source, matcher.target
    mine, theirs = slice(*x.begin[row : row + 2]), slice(*y.begin[column : column + 2])
    translated = (x.present[mine] @ matcher.shares).toarray() * y.weights
    translated /= np.maximum(np.linalg.norm(translated, axis=1, keepdims=True), 1e-12)
    cosines = translated @ y.vectors[theirs].toarray().T
    best, back = np.sort(cosines.max(axis=1))[::-1], np.sort(cosines.max(axis=0))[::-1]
    forward = np.average(cosines.max(axis=1), weights=matcher.source_mass[mine])
    backward = np.average(cosines.max(axis=0), weights=matcher.target_mass[theirs])
    third, back_third = best[: max(1, len(best) // 3)].mean(), back[: max(1, len(back) // 3)].mean()
    return [forward, best[0], best[:3].mean(), third, backward, back_third]
