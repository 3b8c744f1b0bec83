"""The candidates of a cluster get the scores and order of a directory, however the server rounds lengths."""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.cluster.mapping import NOTHING, field_name, terms_of
from indexes.cluster.rescoring import (
    ROUNDING,
    CandidateTerms,
    Rescoring,
    Statistics,
    StatisticsCache,
    Total,
    score,
)
from indexes.cluster.retrievers import text_query
from indexes.interface import Document, IndexesError, Metadata
from indexes.text.bm25 import Bm25Index
from indexes.text.field_scoring import b_of
from indexes.text.fields import FieldsIndex
from indexes.text.forward_index import ForwardIndex
from indexes.text.parameters import AnalysisSettings, Bm25Parameters, Field
from indexes.text.scoring import lucene_idf
from indexes.writer import writer_of
from linker.corpora import Query
from linker.engine import Engine, building
from tests.indexes.cluster.conftest import LONG_QUERIES, Make, long_documents

WORDS = [f"w{n}" for n in range(6)]
LONG = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(1, 60)), min_size=1, max_size=4)
CORPORA = st.lists(LONG, min_size=1, max_size=40)
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)
PARAMETERS = st.builds(
    Bm25Parameters, st.sampled_from([0.0, 0.9, 1.2]), st.sampled_from([0.0, 0.4, 1.0]),
    st.sampled_from([0.0, 1.0]),
)  # fmt: skip


def texts_of(corpus: list[list[tuple[str, int]]]) -> list[list[str]]:
    return [[word for word, count in runs for _ in range(count)] for runs in corpus]


def statistics_of(texts: list[list[str]]) -> Statistics:
    frequencies = Counter(word for text in texts for word in set(text))
    total = Total(len(texts), sum(map(len, texts)), float(len(texts)))
    return Statistics(total, {word: (frequencies[word],) for word in WORDS})


def expected(
    texts: list[list[str]], query: list[str], k: int, parameters: Bm25Parameters
) -> tuple[list[int], list[float]]:
    """Return the rows and scores of a directory's index."""
    index = Bm25Index(AnalysisSettings("none"), parameters=parameters)
    index.add([str(n) for n in range(len(texts))], [" ".join(text) for text in texts])
    index.commit()
    rows, scores = index.search_rows([" ".join(query)], k)
    return rows[0].tolist(), scores[0].tolist()


@given(CORPORA, QUERIES, PARAMETERS)
def test_scores_are_those_of_a_directory_bit_by_bit(
    corpus: list[list[tuple[str, int]]], query: list[str], parameters: Bm25Parameters
) -> None:
    texts = texts_of(corpus)
    found = score(Counter(query), texts, statistics_of(texts), parameters)
    rows, scores = expected(texts, query, len(texts), parameters)
    assert {row: score for row, score in zip(rows, scores, strict=True) if row >= 0} == {
        row: float(score) for row, score in enumerate(found) if score > 0
    }


def rounded(length: int) -> int:
    """Return the length that a server knows: from 40 on, it keeps four significant bits of the excess over 24."""
    bits = max(0, (length - 24).bit_length() - 4) if length >= 40 else 0
    return 24 + (length - 24 >> bits << bits)


def lucene(
    texts: list[list[str]], query: list[str], parameters: Bm25Parameters, factor: float
) -> list[dict[str, Any]]:
    """Return the hits of a server, best first."""
    statistics = statistics_of(texts)
    hits = []
    for row, text in enumerate(texts):
        length, score = rounded(len(text)), 0.0
        for term, count in Counter(query).items():
            (n,), f = statistics.frequencies[term], text.count(term)
            idf = np.log1p((len(texts) - n + 0.5) / (n + 0.5))
            norm = parameters.k1 * (1 - parameters.b + parameters.b * length / statistics.total.average)
            weight = float(
                parameters.query_weights(np.array([float(count)]), np.array([float(len(query))]))[0]
            )
            score += factor * weight * idf * f / (f + norm) if f else 0.0
        if score:
            hits.append({"sort": [float(np.float32(score)), row], "fields": {"terms": [" ".join(text)]}})
    return sorted(hits, key=lambda hit: (-hit["sort"][0], hit["sort"][1]))


# To the server all these texts have a length of 72, and the best one comes last.
ROUNDED = [[("w0", 1), ("w1", length - 1)] for length in range(75, 71, -1)]


@example(ROUNDED, ["w0"], Bm25Parameters(), 1, set(), False)
@example(ROUNDED, ["w0"], Bm25Parameters(), 2, {3}, True)
@given(
    CORPORA, QUERIES, PARAMETERS, st.integers(1, 5), st.sets(st.integers(0, 39), max_size=5), st.booleans()
)
def test_the_top_k_are_those_of_a_directory(
    corpus: list[list[tuple[str, int]]],
    query: list[str],
    parameters: Bm25Parameters,
    k: int,
    removed: set[int],
    has_factor: bool,
) -> None:
    texts, candidates = texts_of(corpus), Rescoring(Counter(query), k, parameters)
    factor = parameters.k1 + 1 if has_factor else 1.0  # Lucene omits it, Elasticsearch includes it
    hits, statistics = lucene(texts, query, parameters, factor), statistics_of(texts)
    rows, scores = expected(texts, query, len(texts), parameters)
    live = [(r, s) for r, s in zip(rows, scores, strict=True) if r >= 0 and r not in removed][:k]
    assert top(candidates, k, hits, statistics, removed) == live


def top(
    candidates: Rescoring, k: int, hits: list[dict[str, Any]], statistics: Statistics, removed: set[int]
) -> list[tuple[int, float]]:
    """Return the rows and scores of the top k after as many hits of a server as are needed."""
    while not candidates.complete:
        after = [n for n, hit in enumerate(hits) if hit["sort"] == candidates.after]
        start, size = after[0] + 1 if after else 0, 2  # the shortest possible page
        page = hits[start : start + size]
        rows = np.array([-1 if h["sort"][1] in removed else h["sort"][1] for h in page], dtype=np.int64)
        candidates.add(page, size, rows, statistics)
    mine, scores = np.full(k, -1, dtype=np.int64), np.full(k, -np.inf, dtype=np.float32)
    candidates.into(mine, scores)
    return [(int(r), float(s)) for r, s in zip(mine, scores, strict=True) if r >= 0]


def lucene_by_fields(
    parts: list[list[list[str]]], query: list[str], parameters: Bm25Parameters
) -> tuple[list[dict[str, Any]], Statistics]:
    """Return a server's hits for the query in fields, best first, and the statistics; `parts`: each field's texts."""
    count, names = len(parts[0]), [field_name(n) for n in range(len(parts))]
    frequencies = {
        word: (
            sum(any(word in text for text in texts) for texts in zip(*parts, strict=True)),
            *(sum(word in text for text in texts) for texts in parts),
        )
        for word in WORDS
    }
    tokens = tuple(sum(map(len, texts)) for texts in parts)
    longest = tuple(max(map(len, texts)) for texts in parts)
    statistics = Statistics(Total(count, sum(tokens), float(count), tokens, longest), frequencies)
    asked = text_query(Counter(query), parameters, [{}], range(len(parts)), statistics)

    def score_of(name: str, value: str, boost: float, row: int) -> float:
        number = names.index(name)
        stored = [text or [NOTHING] for text in parts[number]]
        found, n, b = (
            stored[row].count(value),
            frequencies[value][number + 1],
            b_of(parameters, parameters.fields[number]),
        )
        average = sum(map(len, stored)) / count
        norm = parameters.k1 * (1 - b + b * rounded(len(stored[row])) / average)
        return (
            boost * float(lucene_idf(np.array(n), count)) * (parameters.k1 + 1) * found / (found + norm)
            if found
            else 0.0
        )

    hits = []
    for row in range(count):
        sums = 0.0
        for clause in asked["bool"]["should"]:
            ranked = [next(iter(each["term"].items())) for each in clause["dis_max"]["queries"]]
            scores = [score_of(name, **values, row=row) for name, values in ranked]
            sums += max(scores) + clause["dis_max"]["tie_breaker"] * (sum(scores) - max(scores))
        if sums:
            stored_ = {
                name: [" ".join(texts[row]) or NOTHING] for name, texts in zip(names, parts, strict=True)
            }
            hits.append({"sort": [float(np.float32(sums)), row], "fields": stored_})
    return sorted(hits, key=lambda hit: (-hit["sort"][0], hit["sort"][1])), statistics


PART = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(1, 60)), max_size=3)
PARTS = st.lists(st.tuples(PART, PART, PART), min_size=1, max_size=25)
WEIGHTS = st.tuples(*[st.sampled_from([0.25, 1.0, 2.0, 8.0])] * 3)


@given(PARTS, QUERIES, WEIGHTS, PARAMETERS, st.integers(1, 5))
def test_the_top_k_of_fields_are_those_of_a_directory(
    corpus: list[tuple[list[tuple[str, int]], ...]],
    query: list[str],
    weights: tuple[float, ...],
    parameters: Bm25Parameters,
    k: int,
) -> None:
    fields = tuple(
        Field(name, weight) for name, weight in zip(("title", "text", "tags"), weights, strict=True)
    )
    parameters = dataclasses.replace(parameters, fields=fields)
    parts = [texts_of(list(of_field)) for of_field in zip(*corpus, strict=True)]
    index = FieldsIndex.empty(AnalysisSettings("none"), parameters)
    index.add(
        [
            Document(str(n), " ".join(text), " ".join(title), {"tags": [" ".join(tags)]})
            for n, (title, text, tags) in enumerate(zip(*parts, strict=True))
        ]
    )
    index.commit()
    (rows,), (scores,) = index.search_rows([" ".join(query)], len(corpus))
    exact = {row: score for row, score in zip(rows.tolist(), scores.tolist(), strict=True) if row >= 0}
    hits, statistics = lucene_by_fields(parts, query, parameters)
    assert all(hit["sort"][0] >= exact[hit["sort"][1]] * (1 - ROUNDING) for hit in hits)
    candidates = Rescoring(Counter(query), k, parameters, range(3))
    assert top(candidates, k, hits, statistics, set()) == list(exact.items())[:k]


def test_an_index_without_stored_terms_names_the_remedy() -> None:
    assert terms_of({"fields": {"terms": ["a b"]}}) == "a b"
    with pytest.raises(IndexesError, match="linker index rebuild"):
        terms_of({"sort": [1.0, 3]})


FIELDS = Bm25Parameters(fields=(Field("title", 2.0), Field("text"), Field("tags", 0.5, 0.0)))
ASKED = [
    None,
    FIELDS.weighted({"title": 0.0}),
    FIELDS.weighted({"title": 0.0, "tags": 0.0}),
    FIELDS.weighted({"title": 4.0, "text": 0.25}),
    Bm25Parameters(k3=4.0, fields=(Field("tags", 1.0, 0.0), Field("title", 1.5))),
    Bm25Parameters(k3=0.0),
]


def documents() -> list[Document]:
    """Return documents with texts of up to 280 words; titles and tags, which some lack, share their words."""
    made = []
    for number, long in enumerate(long_documents(300)):
        words = long.text.split()
        cut = len(words) * 7 // 10
        title = " ".join(words[cut : cut + number % 7])
        tags = {"tags": [" ".join(words[cut + 7 :][: number % 40])]} if number % 3 else {}
        made.append(Document(long.id, " ".join(words[:cut]), title, tags | {"group": number % 2}))
    return made


def embedded(where: Path) -> Engine:
    building.create(where, bm25=FIELDS)
    return Engine(where)


def assert_same(mine: Engine, theirs: Engine) -> None:
    """Check that ids and scores are the same, bit for bit."""
    for asked in ASKED:
        for k, where in ((1, None), (10, None), (10, "group=1"), (60, None)):
            one, other = (
                engine.search(LONG_QUERIES, k, mode="bm25", bm25=asked, where=where).hits
                for engine in (mine, theirs)
            )
            for a, b in zip(one, other, strict=True):
                assert (a.ids, a.scores.tolist()) == (b.ids, b.scores.tolist())


@pytest.fixture
def beside(elastic: str, tmp_path: Path) -> Iterator[Engine]:
    settings = ElasticSettings((elastic,), new_name("fields"))
    building.create(tmp_path / "beside", bm25=FIELDS, elastic=settings)
    yield Engine(tmp_path / "beside")
    index = ClusterIndex(settings)
    index.drop()
    index.drop(numberings=True)


def test_fields_rank_as_in_a_directory(make: Make, tmp_path: Path) -> None:
    mine, theirs = make("none", bm25=FIELDS), embedded(tmp_path / "embedded")
    for engine in (mine, theirs):
        engine.add(documents()[:200])
    assert_same(mine, theirs)
    for engine in (mine, theirs):  # the statistics follow
        engine.add(documents()[200:])
        engine.delete([document.id for document in documents()[:20]])
    with writer_of(theirs.directory) as writer:  # until it is compacted, a directory counts removed documents
        writer.compact()
    assert_same(mine, Engine(theirs.directory))
    for wrong, message in (
        (Bm25Parameters(fields=(Field("place"),)), "no field 'place'"),
        (FIELDS.weighted({"title": 0.0, "text": 0.0, "tags": 0.0}), "every field has weight 0"),
        (Bm25Parameters(k1=2.0), "which a query cannot change"),
        (FIELDS.weighted(b={"text": 0.2}), "has b = 0.75 for text, which a query cannot change"),
    ):
        with pytest.raises(IndexesError, match=message):
            mine.search("kisen", bm25=wrong)


def test_fields_rank_as_in_a_directory_although_many_have_a_word_in_each(make: Make, tmp_path: Path) -> None:
    mine, theirs = make("none", bm25=FIELDS), embedded(tmp_path / "embedded")
    group: Metadata = {"group": 1}
    texts = [Document(f"both{n}", f"kisen deras {n} banel sugal", f"kisen {n}", group) for n in range(600)]
    texts += [Document(f"often{n}", "kisen " * 4 + f"kisen {n}", f"nepol {n}", group) for n in range(20)]
    for engine in (mine, theirs):
        engine.add(texts)
        assert engine.search("kisen", 10, mode="bm25").hits[0].ids[0].startswith("often")
    assert_same(mine, theirs)


def test_fields_rank_as_in_a_directory_next_to_one(beside: Engine, tmp_path: Path) -> None:
    theirs = embedded(tmp_path / "embedded")
    for engine in (beside, theirs):
        engine.add(documents())
    assert_same(beside, theirs)


def test_weights_are_tuned_and_stored(make: Make) -> None:
    engine = make("none", bm25=Bm25Parameters(fields=(Field("title"), Field("text"))))
    words = LONG_QUERIES[2].split()[:3] + LONG_QUERIES[3].split()
    engine.add(
        Document(f"{kind}{n}", f"{text} {n}", title)
        for n, word in enumerate(words * 6)
        for kind, title, text in (("a", f"{word} {n}", "filler words"), ("b", "", f"{word} {n} {word} {n}"))
    )
    asked = [Query(f"q{n}", f"{word} {n}") for n, word in enumerate(words * 6)]
    tuning = engine.tune(asked, {query.id: {f"a{query.id[1:]}": 1.0} for query in asked})
    assert tuning.chosen.bm25 is not None
    title, text = Engine(engine.directory).collection.manifest.bm25.fields
    assert title.weight > text.weight
    assert [hits.ids[0] for hits in Engine(engine.directory).search([q.text for q in asked], 1).hits] == [
        f"a{n}" for n in range(len(asked))
    ]


def test_learning_from_answers_sees_the_fields(make: Make, tmp_path: Path) -> None:
    mine, theirs = make("none", bm25=FIELDS), embedded(tmp_path / "embedded")
    for engine in (mine, theirs):
        engine.add(documents()[:50])
    one, other = (engine.collection.linear.vector(documents()[3]) for engine in (mine, theirs))
    assert one.terms.tolist() == other.terms.tolist()
    assert one.values.tolist() == other.values.tolist()


@settings(max_examples=25)
@given(CORPORA, QUERIES)
def test_candidates_alone_are_described_by_the_statistics_of_the_whole_index(
    corpus: list[list[tuple[str, int]]], query: list[str]
) -> None:
    analysis = AnalysisSettings("none")
    texts = [" ".join(f"{word} " * count for word, count in document) for document in [*corpus, [("w9", 1)]]]
    whole = ForwardIndex(analysis)
    whole.add(texts)
    whole.commit()

    class Cache:
        def of(self, terms: list[str]) -> Statistics:
            holders: dict[str, tuple[int, ...]] = {
                term: (sum(term in text.split() for text in texts),) for term in terms
            }
            return Statistics(Total(len(texts), whole.total[1], 0.0, ()), holders)

    rows = np.arange(0, len(texts), 2)
    documents = [Document(str(row), texts[row]) for row in rows]
    asked = " ".join(query)
    some: Any = CandidateTerms(analysis, rows, documents, [asked], cast(StatisticsCache, Cache()))
    got, expected = (index.describe(index.words(asked), rows) for index in (some, whole))
    np.testing.assert_array_equal(got, expected)
