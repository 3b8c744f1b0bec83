"""The weak scores, each against a slow, obvious oracle."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from linker.crosslingual.pages.pages import Terms, count_terms
from linker.crosslingual.scoring import products, scores
from linker.crosslingual.scoring.graph import Graph

SOURCE = ["chat maison banque xyz", "chien chien rive", "", "maison rive rive rive chat"]
TARGET = ["cat house home garden", "bank dog", "garden", "dog dog bank home home", ""]
DICTIONARY = {
    "chat": ["cat"], "chien": ["dog"], "maison": ["house", "home"], "banque": ["bank"], "rive": ["bank"],
}  # fmt: skip


@pytest.fixture
def x() -> Terms:
    return count_terms(SOURCE, str.split)


@pytest.fixture
def y() -> Terms:
    return count_terms(TARGET, str.split)


@pytest.fixture
def translations(x: Terms, y: Terms) -> sp.csr_array:
    matrix = sp.lil_array((len(x.vocabulary), len(y.vocabulary)), dtype=np.float32)
    for foreign, english in DICTIONARY.items():
        for e in english:
            matrix[x.position[foreign], y.position[e]] = 1
    return sp.csr_array(matrix)


def everything(score: products.WeightedProduct | products.Sum) -> np.ndarray:
    return np.vstack([score.block(0, 3), score.block(3, score.shape[0])])


def idf(texts: list[str], word: str) -> float:
    return math.log((len(texts) + 1) / (sum(word in t.split() for t in texts) + 1))


def test_one_way_coverage_is_the_translated_share(x: Terms, y: Terms, translations: sp.csr_array) -> None:
    got = everything(scores.one_way(x, y, translations))
    for i, s in enumerate(SOURCE):
        for j, t in enumerate(TARGET):
            known = [w for w in set(s.split()) if w in DICTIONARY]
            hits = sum(idf(SOURCE, w) for w in known if set(DICTIONARY[w]) & set(t.split()))
            total = sum(idf(SOURCE, w) for w in known)
            assert got[i, j] == pytest.approx(hits / total if total else 0, abs=1e-6)


def test_coverage_counts_both_directions(x: Terms, y: Terms, translations: sp.csr_array) -> None:
    backwards = {e: [f for f, ts in DICTIONARY.items() if e in ts] for ts in DICTIONARY.values() for e in ts}
    got = everything(scores.coverage(x, y, translations))
    for i, s in enumerate(SOURCE):
        for j, t in enumerate(TARGET):
            words = [
                (idf(SOURCE, w), bool(set(DICTIONARY[w]) & set(t.split())))
                for w in set(s.split()) & set(DICTIONARY)
            ]
            words += [
                (idf(TARGET, w), bool(set(backwards[w]) & set(s.split())))
                for w in set(t.split()) & set(backwards)
            ]
            total = sum(weight for weight, _ in words)
            hits = sum(weight for weight, hit in words if hit)
            assert got[i, j] == pytest.approx(hits / total if total else 0, abs=1e-6)


def test_synonyms_are_bm25_of_merged_terms(x: Terms, y: Terms, translations: sp.csr_array) -> None:
    got = everything(scores.synonyms(x, y, translations))
    mean = sum(len(t.split()) for t in TARGET) / len(TARGET)
    for i, s in enumerate(SOURCE):
        for j, t in enumerate(TARGET):
            expected = 0.0
            for w in set(s.split()) & set(DICTIONARY):
                merged = [sum(v in DICTIONARY[w] for v in page.split()) for page in TARGET]
                df, tf = sum(m > 0 for m in merged), merged[j]
                weight = math.log(1 + (len(TARGET) - df + 0.5) / (df + 0.5)) if df else 0
                often = s.split().count(w)
                norm = scores.K1 * (1 - scores.B + scores.B * len(t.split()) / mean)
                expected += (
                    weight
                    * often
                    * (scores.K3 + 1)
                    / (often + scores.K3)
                    * tf
                    * (scores.K1 + 1)
                    / (tf + norm)
                )
            assert got[i, j] == pytest.approx(expected, abs=1e-5)
    back = scores.synonyms_backward(x, y, translations)
    other = scores.synonyms(y, x, sp.csr_array(translations.T))
    np.testing.assert_allclose(everything(back), other.block(0, 5).T, atol=1e-6)


def test_the_translation_model_is_the_mean_log_ratio(x: Terms, y: Terms, translations: sp.csr_array) -> None:
    got = everything(scores.translation_model(x, y, translations))
    backwards = {e: [f for f, ts in DICTIONARY.items() if e in ts] for ts in DICTIONARY.values() for e in ts}
    often = {w: sum(t.split().count(w) for t in SOURCE) + 0.5 for w in x.vocabulary}
    for i, s in enumerate(SOURCE):
        for j, t in enumerate(TARGET):
            expected, mass = 0.0, sum(math.sqrt(s.split().count(w)) for w in set(s.split()))
            for w in set(s.split()):
                p = sum(1 / len(backwards[v]) for v in t.split() if w in backwards.get(v, ())) / max(
                    len(t.split()), 1
                )
                ratio = scores.FROM_PAGE * p / ((1 - scores.FROM_PAGE) * often[w] / sum(often.values()))
                expected += math.sqrt(s.split().count(w)) * math.log1p(ratio)
            assert got[i, j] == pytest.approx(expected / max(mass, 1), abs=1e-5)


def test_cosines_are_those_of_the_translated_vector(x: Terms, y: Terms, translations: sp.csr_array) -> None:
    got = everything(scores.cosine(x, y, translations))

    def vector(weights: dict[str, float]) -> np.ndarray:
        return np.array([weights.get(v, 0.0) * idf(TARGET, v) for v in y.vocabulary])

    for i, s in enumerate(SOURCE):
        translated: dict[str, float] = {}
        for w in set(s.split()) & set(DICTIONARY):
            for e in DICTIONARY[w]:
                share = (1 + math.log(s.split().count(w))) / len(DICTIONARY[w])
                translated[e] = translated.get(e, 0) + share
        for j, t in enumerate(TARGET):
            a, b = vector(translated), vector({v: 1 + math.log(t.split().count(v)) for v in set(t.split())})
            length = np.linalg.norm(a) * np.linalg.norm(b)
            assert got[i, j] == pytest.approx(a @ b / length if length else 0, abs=1e-5)


def test_a_restricted_score_is_that_of_those_pages(x: Terms, y: Terms, translations: sp.csr_array) -> None:
    rows, columns = np.array([3, 0]), np.array([4, 1, 0])
    for score in (
        scores.coverage(x, y, translations),
        scores.one_way(x, y, translations),
        scores.synonyms(x, y, translations),
        scores.cosine(x, y, translations),
    ):
        expected = everything(score)[np.ix_(rows, columns)]
        np.testing.assert_allclose(score.restrict(rows, columns).block(0, 2), expected, atol=1e-6)
        graph = Graph.of(np.array([3, 0, 0, 2]), np.array([1, 4, 0, 2]), score.shape)
        pairs = everything(score)[graph.rows, graph.columns]
        np.testing.assert_allclose(score.pairs(graph), pairs, atol=1e-6)
        if isinstance(score, products.WeightedProduct):
            np.testing.assert_allclose(score.transpose().block(0, 5), everything(score).T, atol=1e-6)
