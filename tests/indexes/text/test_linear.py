"""Texts as normalised BM25 vectors, and the scores of a linear model over all rows, against the definition."""

import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from indexes import kernels
from indexes.interface import Document
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.linear import FULL_TEXT, LinearText
from indexes.text.parameters import AnalysisSettings, Bm25Parameters, Field
from indexes.text.vocabulary import term_hash
from tests.helpers import WORDS, sentence

PARAMETERS = Bm25Parameters(k1=0.9, b=0.4)
compiled = pytest.mark.skipif(kernels.load("linear") is None, reason=kernels.status("linear"))


def texts(count: int = 300) -> list[str]:
    rng = random.Random(7)
    made = [sentence(rng, rng.randint(1, 40)) for _ in range(count)]
    # A count beyond the table, no term at all, a term in every row.
    return [" ".join(["banel"] * 12 + made[0].split()), "", *(f"{text} common" for text in made)]


def oracle(corpus: list[str], text: str) -> dict[str, float]:
    """Return a text's normalised weights, straight from the formula."""
    counted = [Counter(t.split()) for t in corpus]
    average = sum(sum(c.values()) for c in counted) / len(corpus)
    own, k1, b = Counter(text.split()), PARAMETERS.k1, PARAMETERS.b
    norm = k1 * (1 - b + b * sum(own.values()) / average)
    weights = {}
    for term, count in own.items():
        rows = sum(term in c for c in counted)
        idf = math.log(1 + (len(corpus) - rows + 0.5) / (rows + 0.5))
        weights[term] = (idf * (k1 + 1) * count / (count + norm)) if rows else 0.0
    length = math.sqrt(sum(w * w for w in weights.values())) or 1
    return {term: weight / length for term, weight in weights.items() if weight}


def index_of(corpus: list[str], folder: Path | None = None) -> Bm25Index:
    """Return an index of several segments."""
    index = Bm25Index("none", folder, parameters=PARAMETERS)
    for start in (0, 200, 290):
        part = corpus[start : {0: 200, 200: 290}.get(start)]
        index.add([f"d{start + n}" for n in range(len(part))], part)
        index.commit()
    return index


def linear_of(corpus: list[str]) -> LinearText:
    return LinearText({FULL_TEXT: index_of(corpus).scorer()}, AnalysisSettings("none"), PARAMETERS)


def test_vectors_are_the_formula() -> None:
    corpus = texts()
    model = linear_of(corpus)
    for text in (corpus[0], corpus[1], corpus[250], "banel unknown common", "unknown"):
        vector = model.vector(Document("x", text))
        expected = {term_hash(term): weight for term, weight in oracle(corpus, text).items()}
        assert dict(zip(vector.terms.tolist(), vector.values.tolist(), strict=True)) == pytest.approx(
            expected, rel=1e-5
        )


@pytest.mark.parametrize("compiled_loop", [pytest.param(True, marks=compiled), False])
def test_scores_are_the_formula(compiled_loop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled_loop:
        monkeypatch.setattr(kernels, "load", lambda *_: None)
    corpus, rng = texts(), random.Random(3)
    weights = {word: rng.uniform(-1, 1) for word in [*WORDS[:30], "common", "unknown"]}
    hashes = np.array([term_hash(word) for word in weights], dtype=np.uint64)
    scores = linear_of(corpus).scores(hashes, np.array([*weights.values()]))
    expected = [sum(weights.get(t, 0) * x for t, x in oracle(corpus, text).items()) for text in corpus]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=2e-4, atol=2e-6)
    assert scores[1] == 0


@compiled
def test_the_compiled_loop_and_numpy_agree_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = texts()
    hashes = np.array([term_hash(word) for word in WORDS], dtype=np.uint64)
    weights = np.random.default_rng(0).standard_normal(len(WORDS))
    fast = linear_of(corpus).scores(hashes, weights)
    monkeypatch.setattr(kernels, "load", lambda *_: None)
    np.testing.assert_array_equal(fast, linear_of(corpus).scores(hashes, weights))


def test_a_model_of_one_row_scores_that_row_highest_by_its_cosine() -> None:
    corpus = texts()
    model = linear_of(corpus)
    vector = model.vector(Document("x", corpus[37]))
    scores = model.scores(vector.terms, vector.values)
    assert int(scores.argmax()) == 37
    assert scores[37] == pytest.approx(1, abs=1e-5)


def test_fields_have_terms_of_their_own_and_a_weight_of_0_leaves_one_out() -> None:
    parameters = Bm25Parameters(fields=(Field("title", 2.0), Field("text", 1.0), Field("place", 0.0)))
    index = FieldsIndex.empty(AnalysisSettings("none"), parameters)
    documents = [
        Document("a", "rain in town", "flood", {"place": "valencia"}),
        Document("b", "flood in town", "rain", {"place": "valencia"}),
        Document("c", "match in town", "goal", {"place": "valencia"}),
    ]
    index.add(documents)
    index.commit()
    model = LinearText(index.scorers(), AnalysisSettings("none"), parameters)
    vectors = [model.vector(document) for document in documents]
    scores = np.array([model.scores(v.terms, v.values) for v in vectors])
    np.testing.assert_allclose(np.diag(scores), 1, atol=1e-5)
    # only "in" and "town": flood in a title and flood in a text are different terms
    assert scores[0, 1] < 0.2
    assert not set(vectors[0].terms.tolist()) & {term_hash("valencia")}
