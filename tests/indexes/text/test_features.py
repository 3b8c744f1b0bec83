"""Features of a query and a candidate: worked numbers, and the compiled loop against plain Python."""

import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexes import kernels
from indexes.interface import Document
from indexes.text import features
from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.features import CAPITAL, CONTENT, NAMES, NUMBER, QueryReader
from indexes.text.fields import FieldsIndex
from indexes.text.forward_index import ForwardIndex
from indexes.text.linear import FULL_TEXT, LinearText
from indexes.text.parameters import AnalysisSettings, Bm25Parameters, Field
from indexes.text.vocabulary import term_hash
from tests.helpers import WORDS as OTHER_WORDS
from tests.helpers import sentence

compiled = pytest.mark.skipif(kernels.load("features") is None, reason=kernels.status("features"))
WORDS = ["the", "cat", "Cat", "sat", "mat", "of", "42", "Zebra", "dog", "runs", "blue."]
TEXT = st.lists(st.sampled_from([*WORDS, ".", "\n"]), max_size=60).map(" ".join)
TEXTS = st.lists(TEXT, min_size=1, max_size=6)


def described(texts: list[str], query: str, row: int) -> dict[str, float]:
    index = ForwardIndex.of(texts)
    values = index.describe(index.words(query), np.array([row]))[0]
    return dict(zip(NAMES, values.tolist(), strict=True))


def test_a_query_has_words_terms_and_kinds() -> None:
    words = QueryReader(Analysis("english")).read("The Zebra of 42 zebras")
    assert words.word.tolist() == [0, 1, 2, 3, 1]
    assert words.kind.tolist() == [CAPITAL, CONTENT | CAPITAL, 0, CONTENT | NUMBER]
    assert QueryReader(Analysis("english")).read("the of").kind.tolist() == [CONTENT, CONTENT]
    assert len(QueryReader(Analysis("english")).read("").word) == 0


def test_worked_numbers() -> None:
    texts = ["Zebra runs. The blue dog runs far", "dog", "cat", "cat mat"]
    found = described(texts, "blue dog of Zebra 42", 0)
    # Of 4 texts, one has blue and zebra, two have dog, none have 42; "of" is a stop word.
    idf = {n: math.log(1 + (4 - n + 0.5) / (n + 0.5)) for n in (0, 1, 2)}
    total = 2 * idf[1] + idf[2] + idf[0]
    one = (2 * idf[1] + idf[2]) / total
    expected = {
        "coverage": one, "missing": 1, "missing_numbers": 1, "missing_names": 0, "names": 1, "numbers": 0,
        "missing_idf": idf[0], "length": 7, "sentences": 2, "query_words": 5, "query_terms": 4, "query_idf": total,
        "sentence": (idf[1] + idf[2]) / total, "second_sentence": idf[1] / total, "sentences_2": one, "tokens_25": one,
        "sentence_position": 0.5, "run": 2, "run_share": 0.4, "run_weight": (idf[1] + idf[2]) / total,
        # blue and dog are adjacent, dog and Zebra (in the other order) at a distance of 4.
        "bigrams": (idf[1] + idf[2]) / (2 * idf[1] + 2 * idf[2] + idf[1] + idf[0]),
        "density": 3 / 7, "nearness": (idf[1] / 3 + min(idf[1], idf[2])) / total,
        "bm25": sum(i * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 7 / 2.75)) for i in (idf[1], idf[1], idf[2])),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-6)


def test_a_query_without_known_words_and_an_empty_text_have_features() -> None:
    for query, texts in (("", ["a cat"]), ("unknown", ["a cat"]), ("cat", [""]), ("cat", ["", "cat"])):
        values = described(texts, query, 0)
        assert all(math.isfinite(value) for value in values.values())
        assert values["coverage"] == 0


@compiled
@settings(deadline=None, max_examples=200)
@given(TEXTS, TEXT)
@example(["cat cat cat"], "cat cat")
@example(["mat cat. cat mat"], "cat mat cat")
def test_the_compiled_loop_is_plain_python(texts: list[str], query: str) -> None:
    index = ForwardIndex.of(texts)
    rows, words = np.arange(len(texts)), index.words(query)
    fast = index.describe(words, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "load", lambda *_: None)
        slow = index.describe(words, rows)
    np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-6)


@compiled
def test_long_texts_and_queries_are_cut_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in rng.zipf(1.3, size) % 400) for size in (9000, 300)]
    index = ForwardIndex.of([text.replace(" w7 ", ". ") for text in texts])
    words = index.words(" ".join(f"w{n}" for n in rng.integers(0, 600, 1500)))
    assert len(words.hashes) == features.MOST_TERMS and len(words.word) <= features.MOST_WORDS
    fast = index.describe(words, np.arange(2))
    monkeypatch.setattr(kernels, "load", lambda *_: None)
    np.testing.assert_allclose(fast, index.describe(words, np.arange(2)), rtol=1e-5, atol=1e-6)


def test_segments_share_their_statistics() -> None:
    texts = ["the cat sat", "a dog", "the cat runs", "a zebra. A cat"]
    whole, split = ForwardIndex.of(texts), ForwardIndex()
    split._segments = []
    for text in texts:
        split.add([text])
        parts = list(split._segments)
        split._segments = []
        split.commit()
        new = split._segments[0]
        object.__setattr__(new, "first", len(parts))
        split._segments = [*parts, new]
    words = whole.words("cat zebra")
    np.testing.assert_array_equal(whole.describe(words, np.arange(4)), split.describe(words, np.arange(4)))


PARAMETERS = Bm25Parameters(k1=0.9, b=0.4)
compiled_linear = pytest.mark.skipif(kernels.load("linear") is None, reason=kernels.status("linear"))


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


@pytest.mark.parametrize("compiled_loop", [pytest.param(True, marks=compiled_linear), False])
def test_scores_are_the_formula(compiled_loop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled_loop:
        monkeypatch.setattr(kernels, "load", lambda *_: None)
    corpus, rng = texts(), random.Random(3)
    weights = {word: rng.uniform(-1, 1) for word in [*OTHER_WORDS[:30], "common", "unknown"]}
    hashes = np.array([term_hash(word) for word in weights], dtype=np.uint64)
    scores = linear_of(corpus).scores(hashes, np.array([*weights.values()]))
    expected = [sum(weights.get(t, 0) * x for t, x in oracle(corpus, text).items()) for text in corpus]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=2e-4, atol=2e-6)
    assert scores[1] == 0


@compiled_linear
def test_the_compiled_loop_and_numpy_agree_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = texts()
    hashes = np.array([term_hash(word) for word in OTHER_WORDS], dtype=np.uint64)
    weights = np.random.default_rng(0).standard_normal(len(OTHER_WORDS))
    fast = linear_of(corpus).scores(hashes, weights)
    monkeypatch.setattr(kernels, "load", lambda *_: None)
    np.testing.assert_array_equal(fast, linear_of(corpus).scores(hashes, weights))


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
