"""Reviews of documents in two languages: the index's lexicon carries seeds and verdicts from one to the other."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from indexes.dtypes import Float32Array
from indexes.interface import Document
from linker.engine import Engine, building
from linker.engine.foreign import OWN, TRANSLATED, Foreign
from linker.engine.lexicons import SURE, QueryLexicon, likeliest
from linker.review.interface import Judgement, LanguageCount, Seed
from linker.review.learning import FeedbackOrder
from linker.review.population import Population
from linker.review.session import Review, find
from linker.review.session.noting import facts_of
from linker.review.settings import Settings
from tests.review.memory_ledger import STORIES, MemoryLedger, documents

pytest.importorskip("sklearn")
WORDS = sorted({word for document in documents() for word in document.text.split()})
LEANING = {f"{word}ix": 2.0 for word in WORDS} | dict.fromkeys(WORDS, -2.0)
LEXICON = QueryLexicon("xx", "none", {f"{word}ix": word for word in WORDS}, LEANING)
SEED = Seed("s1", "", document="flood0")


def foreign(document: Document) -> Document:
    """Return a document in the other language, in which every word ends in "ix"."""
    text = " ".join(f"{word}ix" for word in document.text.split())
    return replace(document, id=f"x-{document.id}", text=text)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An index of 60 documents and the other 30, in the other language, with its lexicon."""
    folder = tmp_path_factory.mktemp("languages") / "index"
    building.create(folder, encoder="none")
    with Engine(folder) as engine:
        engine.add([*documents(), *(foreign(d) for d in documents() if d.metadata["even"])])
        engine.store_lexicon(LEXICON)
        yield engine


def order_of(engine: Engine, *seeds: Seed) -> FeedbackOrder:
    return FeedbackOrder(engine, seeds, Population(engine.collection.rows, seeds, Settings()))


def shown(order: FeedbackOrder, count: int) -> list[str]:
    """Judge the next documents by their story, and return them."""
    ids = []
    for _ in range(count):
        candidate = order.next()
        assert candidate
        ids.append(candidate.id)
        order.tell(Judgement("s1", candidate.id, "relevant" if "flood" in candidate.id else "not"))
    return ids


def test_the_languages_of_documents_are_known_and_so_are_their_words_and_translations(engine: Engine) -> None:
    rows, ids = engine.foreign.rows.tolist(), engine.collection.rows.ids
    assert [ids[row] for row in rows] == [id_ for id_ in ids if id_.startswith("x-")]
    assert engine.foreign.names == ("English", "xx")
    document = engine.document("x-flood0")
    assert engine.foreign.reading(document) == ("xx", engine.document("flood0").text)
    assert engine.foreign.reading(engine.document("flood0")) == ("", "")
    linear, vector = engine.collection.linear, engine.foreign.vector
    parts = [linear.vector(engine.document(id_)) for id_ in ("x-flood2", "flood2")]
    expected = {
        int(term): weight * value
        for part, weight in zip(parts, (OWN, TRANSLATED), strict=True)
        for term, value in zip(part.terms, part.values, strict=True)
    }
    foreign = vector(engine.document("x-flood2"))
    assert dict(zip(foreign.terms.tolist(), foreign.values.tolist(), strict=True)) == pytest.approx(expected)
    assert np.linalg.norm(foreign.values) == pytest.approx(1)
    english = vector(engine.document("flood2"))
    assert np.array_equal(english.terms, parts[1].terms) and np.array_equal(english.values, parts[1].values)


def test_all_rows_are_scored_by_what_their_vectors_are(engine: Engine) -> None:
    collection, generator = engine.collection, np.random.default_rng(0)
    vectors = [engine.foreign.vector(collection.documents[row]) for row in range(len(engine))]
    terms = np.unique(np.concatenate([v.terms for v in vectors]))[::2]
    weights = generator.normal(size=len(terms))
    by_term = dict(zip(terms.tolist(), weights.tolist(), strict=True))
    slow = [
        sum(by_term.get(t, 0) * x for t, x in zip(v.terms.tolist(), v.values.tolist(), strict=True))
        for v in vectors
    ]
    assert engine.foreign.scores(terms, weights) == pytest.approx(slow, abs=1e-5)


def test_documents_are_translated_in_one_pass_as_one_by_one(tmp_path: Path) -> None:
    words = {"haus": "house", "wurz": "root directory", "geht": "who", "unbenutzt": "unused"}
    german = QueryLexicon("de", "german", words, {"das": 3.0, "haus": 3.0, "the": -3.0, "von": 1.0})
    chinese = QueryLexicon("zh", "chinese", {"目录": "directory", "文件": "file"}, {"录": 3.0, "文": 3.0})
    texts = [
        ("Das Haus", "von Müllers, das Haus: »rleigh« (rleigh→Wurz) v1.5/haus_2, 12.30"), ("", "Das Haus geht"),
        ("", "das Haus die der und"), ("Das Haus", "die der"), ("", "Das HAUS der Häuser, unbenutztere Wurzeln…"),
        ("文件", "列出目录和文件,literal、locale"), ("", "the house of das Haus"), ("The root", "unused file"),
    ]  # fmt: skip
    building.create(tmp_path / "index", encoder="none", language="english")
    with Engine(tmp_path / "index") as engine:
        engine.add(Document(f"d{n}", text, title) for n, (title, text) in enumerate(texts))
        engine.store_lexicon(german)
        engine.store_lexicon(chinese)
        foreign, linear = engine.foreign, engine.collection.linear
        each = [engine.document(id_) for id_ in engine.collection.rows.ids]
        likely = [likeliest(foreign.lexicons, document.full_text) for document in each]
        assert foreign.languages.tolist() == [number if odds >= SURE else -1 for number, odds in likely]
        assert {*foreign.languages.tolist()} == {-1, 0, 1}
        terms, matrix = foreign._matrix
        for row, values in zip(foreign.rows.tolist(), matrix.toarray(), strict=True):
            lexicon = foreign.lexicons[foreign.languages[row]]
            expected = linear.vector(Document("", lexicon.translated(each[row].full_text)))
            found = dict(zip(terms.tolist(), values.tolist(), strict=True))
            assert {t: v for t, v in found.items() if v} == dict(
                zip(expected.terms.tolist(), expected.values.tolist(), strict=True)
            )


def test_seeds_and_verdicts_reach_the_other_language(engine: Engine) -> None:
    first = shown(order_of(engine, SEED), 30)
    assert sum("flood" in id_ for id_ in first) >= 27
    assert sum(id_.startswith("x-flood") for id_ in first) >= 9
    order = order_of(engine)
    for number in (0, 2, 4):
        order.tell(Judgement("", f"x-vote{number}", "relevant"))
        order.tell(Judgement("", f"x-match{number}", "not"))
    found = [candidate.id for _ in range(20) if (candidate := order.next())]
    assert sum("vote" in id_ for id_ in found) >= 17
    assert sum(id_.startswith("vote") for id_ in found) >= 10


def test_a_seed_in_the_other_language_finds_both(engine: Engine) -> None:
    seed = Seed("s1", " ".join(f"{word}ix" for word in STORIES["flood"]))
    first = shown(order_of(engine, seed), 30)
    assert sum("flood" in id_ for id_ in first) >= 27


def test_without_the_lexicon_the_other_language_comes_later(engine: Engine) -> None:
    with_lexicon = shown(order_of(engine, SEED), 20)
    engine._current().__dict__["foreign"] = Foreign(engine.collection, ())
    try:
        without = shown(order_of(engine, SEED), 20)
    finally:
        del engine._current().__dict__["foreign"]
    assert sum(id_.startswith("x-flood") for id_ in with_lexicon) > sum(
        i.startswith("x-flood") for i in without
    )


def test_an_index_in_one_language_is_read_as_without_a_lexicon(tmp_path: Path) -> None:
    orders: list[list[str]] = []
    scores: list[Float32Array] = []
    for name in ("without", "with"):
        building.create(tmp_path / name, encoder="none")
        with Engine(tmp_path / name) as engine:
            engine.add(documents())
            if name == "with":
                engine.store_lexicon(LEXICON)
            order = order_of(engine, SEED)
            orders.append(shown(order, 59))
            scores.append(order.prepare())
            assert not len(engine.foreign.rows) and not Review(engine, MemoryLedger([SEED])).languages()
    assert orders[0] == orders[1] and np.array_equal(scores[0], scores[1])


def test_a_review_counts_what_was_read_and_found_in_each_language(engine: Engine) -> None:
    review = Review(engine, MemoryLedger([SEED]))
    report = find(review, lambda c: "relevant" if "flood" in c.id else "not")
    assert report.languages == tuple(review.languages())
    own, other = report.languages
    assert own.documents == 59 and other == LanguageCount("xx", 30, other.read, 10)
    assert (own.read + other.read, own.relevant + other.relevant) == (report.read, report.relevant)
    assert facts_of(review)["languages"] == [asdict(own), asdict(other)]
