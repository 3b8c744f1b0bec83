"""BM25F on a server: the rankings of a directory with the same fields, to the last bit, for any weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.interface import Document, IndexesError
from indexes.text.parameters import Bm25Parameters, Field
from indexes.writer import writer_of
from linker.corpora import Query
from linker.engine import Engine, building
from tests.indexes.cluster.conftest import LONG_QUERIES, Make, long_documents

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
