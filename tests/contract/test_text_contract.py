"""The contract of every text backend, compared with a plain BM25. A new backend is one more factory."""

import dataclasses
import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes.cluster.beside import ServerText
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.interface import (
    BadIdError,
    Document,
    DuplicateIdError,
    Filter,
    Hits,
    IndexesError,
    Metadata,
    RowArray,
    ScoreArray,
    TextIndex,
    UnknownIdError,
)
from indexes.rows import Rows
from indexes.store.records import Manifest
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.parameters import AnalysisSettings, Bm25Parameters, Field
from tests.contract import cluster

DEFAULT, OTHER = Bm25Parameters(), Bm25Parameters(0.6, 0.3, 4)


@dataclass(frozen=True)
class Backend:
    """`make` gives an empty index without stemming and stop words, `reopen` the same one read from storage.

    `on_server`: whether a server ranks, so k1 and b cannot differ per query.
    """

    make: Callable[[Bm25Parameters], TextIndex]
    reopen: Callable[[TextIndex], TextIndex]
    on_server: bool = False

    def oracle(
        self,
        documents: dict[str, str],
        query: str,
        k: int,
        where: Filter | None = None,
        metadata: dict[str, Metadata] | None = None,
        parameters: Bm25Parameters = DEFAULT,
    ) -> list[tuple[str, float]]:
        """Return the results expected of this backend."""
        return oracle(documents, query, k, where, metadata, parameters)


def in_memory(folder: Path) -> Backend:
    def reopen(index: TextIndex) -> TextIndex:
        return index  # nothing is stored

    return Backend(lambda p: Bm25Index("none", parameters=p), reopen)


def on_disk(folder: Path) -> Backend:
    names = (folder / str(n) for n in range(1_000_000))

    def reopen(index: TextIndex) -> TextIndex:
        assert isinstance(index, Bm25Index)
        rows = Rows()
        # a collection keeps metadata with the documents
        known = {id_: METADATA.get(id_, {}) for id_ in index._rows.ids}
        rows.restore(list(index._rows.ids), index._rows.dead, [known[id_] for id_ in index._rows.ids])
        index.commit()
        index.snapshot(snapshot := next(names))
        return Bm25Index.resume(snapshot, next(names), rows, "none", index._parameters)

    return Backend(lambda p: Bm25Index("none", next(names), parameters=p), reopen)


class InFields:
    """A TextIndex by BM25F: the texts are one of two fields, and the other one is empty."""

    def __init__(self, index: FieldsIndex) -> None:
        self.index = index

    def add(
        self, ids: Sequence[str], texts: Sequence[str], metadata: Sequence[Metadata] | None = None
    ) -> None:
        if len(ids) != len(texts) or len(ids) != len(metadata if metadata is not None else ids):
            # An index with fields takes documents, which have both.
            raise IndexesError("ids, texts and metadata differ in number")
        self.index.add([Document(i, t) for i, t in zip(ids, texts, strict=True)], metadata)

    def remove(self, ids: Sequence[str]) -> None:
        self.index.remove(ids)

    def search(
        self, texts: Sequence[str], k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> list[Hits]:
        return self.index._rows.hits(*self.index.search_rows(texts, min(k, len(self) or 1), where, bm25))

    def search_rows(
        self, queries: Sequence[str], k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        return self.index.search_rows(queries, k, where, bm25)

    def __len__(self) -> int:
        return len(self.index)


def in_fields(folder: Path) -> Backend:
    names = (folder / str(n) for n in range(1_000_000))
    analysis, fields = AnalysisSettings("none"), (Field("title"), Field("text"))

    def make(parameters: Bm25Parameters) -> TextIndex:
        parameters = dataclasses.replace(parameters, fields=fields)
        return InFields(FieldsIndex.resume(None, next(names), Rows(), analysis, parameters))

    def reopen(index: TextIndex) -> TextIndex:
        assert isinstance(index, InFields)
        rows, old = Rows(), index.index
        rows.restore(list(old._rows.ids), old._rows.dead, [METADATA.get(i, {}) for i in old._rows.ids])
        old.commit()
        snapshot = next(names)
        snapshot.mkdir()
        for name, field in old.folders.items():
            field.snapshot(snapshot / name)
        return InFields(FieldsIndex.resume(snapshot, next(names), rows, analysis, old._parameters))

    return Backend(make, reopen)


def on_a_server(url: str, shards: int) -> Backend:
    def make(parameters: Bm25Parameters) -> TextIndex:
        server = ClusterIndex(ElasticSettings((url,), new_name("contract"), shards), timeout=60)
        server.create(bm25=parameters)
        return ServerText(Manifest(analysis=AnalysisSettings("none"), bm25=parameters), Rows(), server)

    def reopen(index: TextIndex) -> TextIndex:
        assert isinstance(index, ServerText)
        index.commit()
        index.settle()
        rows = Rows()
        rows.restore(list(index._rows.ids), index._rows.dead)
        return ServerText(index._manifest, rows, ClusterIndex(index.index.settings, timeout=60))

    return Backend(make, reopen, on_server=True)


def on_a_cluster(url: str, shards: int, server: str = "elastic", fields: tuple[Field, ...] = ()) -> Backend:
    return Backend(
        lambda p: cluster.texts(
            f"{server}+{url}/{new_name('contract')}", dataclasses.replace(p, fields=fields), shards
        ),
        lambda index: cast(cluster.OnCluster, index).reopen(),
        on_server=True,
    )


BACKENDS: dict[str, Callable[[Path], Backend]] = {"memory": in_memory, "disk": on_disk, "fields": in_fields}
MAKE_ON_SERVER = {
    "elastic": functools.partial(on_a_server, shards=1),
    "elastic in shards": functools.partial(on_a_server, shards=3),
    "cluster in shards": functools.partial(on_a_cluster, shards=3),
    "cluster in fields": functools.partial(on_a_cluster, shards=3, fields=(Field("title"), Field("text"))),
    "opensearch": functools.partial(on_a_cluster, shards=1, server="opensearch"),
}
SERVERS = tuple(MAKE_ON_SERVER)


def built(request: pytest.FixtureRequest, name: str, folder: Path, made: list[TextIndex]) -> Backend:
    """Return a backend that notes the indexes that it makes."""
    on_server = MAKE_ON_SERVER.get(name)
    server = "opensearch" if name.startswith("opensearch") else "elastic"
    plain = on_server(request.getfixturevalue(server)) if on_server else BACKENDS[name](folder)

    def kept(index: TextIndex) -> TextIndex:
        made.append(index)
        return index

    return Backend(lambda p: kept(plain.make(p)), lambda index: kept(plain.reopen(index)), plain.on_server)


@pytest.fixture(params=[*BACKENDS, *SERVERS])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    made: list[TextIndex] = []
    yield built(request, request.param, tmp_path, made)
    for index in made:
        close(index)


@pytest.fixture(scope="module", params=[*BACKENDS, *SERVERS])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Backend, TextIndex]]:
    """A backend and its index of the news, which no test changes."""
    made: list[TextIndex] = []
    one = built(request, request.param, tmp_path_factory.mktemp("shared"), made)
    yield one, news(one)
    for index in made:
        close(index)


def close(index: TextIndex) -> None:
    if isinstance(index, Bm25Index | cluster.OnCluster):
        index.close()
    elif isinstance(index, ServerText):
        index.index.drop()
        index.close()


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def oracle(
    documents: dict[str, str],
    query: str,
    k: int,
    where: Filter | None = None,
    metadata: dict[str, Metadata] | None = None,
    p: Bm25Parameters = DEFAULT,
) -> list[tuple[str, float]]:
    counts = {id_: Counter(words(text)) for id_, text in documents.items()}
    average = sum(c.total() for c in counts.values()) / max(1, len(counts))
    scores: dict[str, float] = {}
    k3 = p.k3 * max(1, len(words(query)) / 32)
    for term, times in Counter(words(query)).items():
        weight = times if math.isinf(k3) else (k3 + 1) * times / (k3 + times)
        n = sum(term in c for c in counts.values())
        idf = weight * math.log(1 + (len(counts) - n + 0.5) / (n + 0.5))
        for id_, c in counts.items():
            if term in c and (where is None or where.accepts((metadata or {}).get(id_, {}))):
                norm = p.k1 * (1 - p.b + p.b * c.total() / average)
                scores[id_] = scores.get(id_, 0) + idf * c[term] * (p.k1 + 1) / (c[term] + norm)
    rank = {id_: row for row, id_ in enumerate(documents)}
    return sorted(scores.items(), key=lambda item: (-round(item[1], 9), rank[item[0]]))[:k]


def check(hits: Hits, expected: Sequence[tuple[str, float]]) -> None:
    assert list(hits.ids) == [id_ for id_, _ in expected]
    np.testing.assert_allclose(hits.scores, [score for _, score in expected], rtol=1e-5)
    assert hits.scores.dtype == np.float32


NEWS = {
    "n1": "The cat sat on the mat", "n2": "Dogs and cats: the cat, the dog, the cat again", "n3": "",
    "n4": "A dog barked at the mat " + "and again " * 40, "n5": "Ähnlich große Straße, naïve café; Москва 東京",
    "n6": "The cat sat on the mat", "n7": "cat " * 500,
}  # fmt: skip
QUERIES = [
    "cat", "the cat sat", "cat cat dog", "CAFÉ große", "москва", "nowhere", "", "…!", "mat again barked",
]  # fmt: skip
METADATA: dict[str, Metadata] = {
    "n1": {"lang": "en", "year": 2020, "tags": ["pets", "home"], "ok": True},
    "n2": {"lang": "en", "year": 2021, "tags": ["pets"], "ok": False},
    "n4": {"lang": "de", "year": 2021, "nothing": None, "weight": 0.5},
    "n6": {"lang": "x" * 70_000, "year": "2020"},
    "n7": {"lang": "en\x1fyear", "deep": {"a": 1}},
}


def news(backend: Backend, parameters: Bm25Parameters = DEFAULT) -> TextIndex:
    index = backend.make(parameters)
    index.add(list(NEWS), list(NEWS.values()), [METADATA.get(id_, {}) for id_ in NEWS])
    return index


def test_hits_are_the_oracles(shared: tuple[Backend, TextIndex], subtests: pytest.Subtests) -> None:
    backend, index = shared
    for query in QUERIES:
        with subtests.test(query=query):
            for k in (1, 2, 100):
                check(index.search([query], k)[0], backend.oracle(NEWS, query, k))


def test_parameters_are_those_of_index_or_query(backend: Backend, subtests: pytest.Subtests) -> None:
    index: Any = news(backend, OTHER)

    def found(query: str, changed: Bm25Parameters | None) -> Hits:
        hits: Hits = index.search([query], 100, bm25=changed)[0]
        return hits

    for query in (*QUERIES, "cat cat cat dog dog mat " * 12):
        with subtests.test(query=query):
            for p in (None, *(OTHER.changed(k3=k3) for k3 in (0, 1, math.inf))):
                check(found(query, p), backend.oracle(NEWS, query, 100, parameters=p or OTHER))
            if backend.on_server:
                with pytest.raises(
                    IndexesError, match=r"k1 = 0\.6 and b = 0\.3, which a query cannot change"
                ):
                    found(query, DEFAULT)
            else:
                check(found(query, DEFAULT), backend.oracle(NEWS, query, 100))
            check(found(query, None), backend.oracle(NEWS, query, 100, parameters=OTHER))


def test_a_batch_answers_as_its_queries_alone(shared: tuple[Backend, TextIndex]) -> None:
    _, index = shared
    for query, together in zip(QUERIES, index.search(QUERIES, 3), strict=True):
        alone = index.search([query], 3)[0]
        assert together.ids == alone.ids
        assert together.scores.tolist() == alone.scores.tolist()
    assert index.search([], 3) == []


FILTERS = [
    ["lang=en"], ["lang=en", "lang=de"], ["lang=en", "year=2021"], ["year=2020"], ["tags=pets"],
    ["tags=home", "tags=pets"], ["ok=true"], ["ok=false"], ["ok=True"], ["weight=0.5"], ["unknown=1"],
    ["nothing=None"], ["lang=" + "x" * 70_000], ["lang=en\x1fyear"], ["deep=a"], ["lang="],
    ["lang=en|de"], ["lang!=en"], ["lang!=en|de", "year=2020"], ["unknown!=1"], ["tags!=home"], ["year>2020"],
    ["year>=2020", "year<2021"], ["weight<1"], ["weight>2021-01"], ["unknown<1"], ["year>=2020-06"], ["ok<2"],
]  # fmt: skip


def test_filters(shared: tuple[Backend, TextIndex], subtests: pytest.Subtests) -> None:
    backend, index = shared
    for conditions in FILTERS:
        where = Filter.parse(conditions)
        with subtests.test(where=str(conditions)[:80]):
            for query in ("cat dog", "the mat"):
                for k in (1, 10):
                    check(index.search([query], k, where)[0], backend.oracle(NEWS, query, k, where, METADATA))
    check(index.search(["cat"], 10, Filter(()))[0], backend.oracle(NEWS, "cat", 10))  # no condition
    assert len(index.search(["cat"], 10, Filter((("lang", ()),)))[0]) == 0  # no value


COMPARED: list[Any] = [
    5, -5, 0, -0.0, 1e300, -1e-300, 2020, "2021", "2021.0", "2021-03", "2021-03-31", "2021-03-31T23:59:59.999Z",
    "2021-04-01T01:00+02:00", "2021-04-01", "0001-01-01", "9999-12-31", "soon", "", True, None, ["2020", "7"],
    ["x", "2021-03-01"], [3, "2022-01-01"], 2**60, "0" * 63 + "7", "0" * 64 + "7",
]  # fmt: skip
BOUNDS = [
    "0", "5", "-5", "2020", "2021", "2021-03", "2021-03-31", "2021-03-31T22:00-01:00", "1e300", "0001", "9999-12",
]  # fmt: skip


def test_ranges_are_those_of_the_definition(backend: Backend) -> None:
    index = backend.make(DEFAULT)
    ids = [f"d{number:02}" for number in range(len(COMPARED))]
    documents = [{"v": value, "vv": "2021-03"} for value in COMPARED]
    index.add(ids, ["cat"] * len(ids), documents)
    for bound in BOUNDS:
        for sign in (">=", ">", "<=", "<"):
            where = Filter.parse(f"v{sign}{bound}")
            assert where is not None
            expected = {i for i, metadata in zip(ids, documents, strict=True) if where.accepts(metadata)}
            assert set(index.search(["cat"], 100, where)[0].ids) == expected, where


def test_what_is_removed_is_gone_and_may_come_back(backend: Backend) -> None:
    index = news(backend)
    assert index.search(["cat sat"], 1)[0].ids == ("n1",)
    index.remove(["n1", "n1"])
    assert len(index) == len(NEWS) - 1
    assert "n1" not in index.search(["cat sat"], 10)[0].ids
    index.add(["n1"], [NEWS["n1"]])
    ids = index.search(["cat sat"], 10)[0].ids
    assert ids[:2] == ("n6", "n1")  # equal scores: n1 has a later row now
    assert index.search(["cat sat"], 1)[0].ids == ("n6",)
    assert len(index) == len(NEWS)


def test_added_and_removed_before_the_first_search(backend: Backend) -> None:
    index = backend.make(DEFAULT)
    index.add(["a", "b"], ["one cat", "another cat"])
    index.remove(["a"])
    assert index.search(["cat"], 5)[0].ids == ("b",)
    index.remove(["b"])
    assert len(index) == 0
    assert index.search(["cat"], 5)[0].ids == ()


def test_reopened_it_answers_the_same_and_goes_on(backend: Backend) -> None:
    index = news(backend)
    index.remove(["n6"])
    before = index.search(QUERIES, 10)
    where = Filter.parse(["lang=en"])
    filtered = index.search(QUERIES, 10, where)
    index = backend.reopen(index)
    for old, new in zip(
        before + filtered, index.search(QUERIES, 10) + index.search(QUERIES, 10, where), strict=True
    ):
        assert new.ids == old.ids
        assert new.scores.tolist() == old.scores.tolist()
    with pytest.raises(DuplicateIdError, match="n1"):
        index.add(["n1"], ["again"])
    index.add(["n8"], ["zebra cat"])
    index.remove(["n2"])
    assert index.search(["zebra"], 5)[0].ids == ("n8",)
    assert "n2" not in index.search(["cat"], 10)[0].ids
    assert len(index) == len(NEWS) - 1


def test_a_refused_batch_changes_nothing(backend: Backend) -> None:
    index = news(backend)
    new = ["z1", "z2"]
    for ids, error in (
        (["z1", "n1"], DuplicateIdError), (["z1", "z1"], DuplicateIdError), (["z1", "a b"], BadIdError),
        (["z1", ""], BadIdError), (["z1"], IndexesError),
    ):  # fmt: skip
        with pytest.raises(error):
            index.add(ids, ["zebra", "zebra"])
    with pytest.raises(IndexesError):
        index.add(new, ["zebra", "zebra"], [{}])
    with pytest.raises((TypeError, AttributeError)):
        index.add(new, ["zebra", None])  # type: ignore[list-item]  # a caller without a type checker
    with pytest.raises(UnknownIdError, match="z9"):
        index.remove(["n1", "z9"])
    assert len(index) == len(NEWS)
    assert index.search(["zebra"], 5)[0].ids == ()
    assert "n1" in index.search(["cat"], 10)[0].ids
    index.add(new, ["zebra", "zebra"])
    assert index.search(["zebra"], 5)[0].ids == ("z1", "z2")


def test_an_empty_index_answers_nothing(backend: Backend) -> None:
    index = backend.make(DEFAULT)
    assert len(index) == 0
    assert [h.ids for h in index.search(["cat", ""], 5, Filter.parse(["a=b"]))] == [(), ()]
    index.add([], [])
    index.remove([])
    assert len(index) == 0
    index.add(["a"], [""])
    assert [h.ids for h in index.search(["cat"], 5)] == [()]


def test_k_is_one_at_least_and_may_be_enormous(shared: tuple[Backend, TextIndex]) -> None:
    backend, index = shared
    for k in (0, -1):
        with pytest.raises(IndexesError, match="at least 1"):
            index.search(["cat"], k)
    check(index.search(["cat"], 10**12)[0], backend.oracle(NEWS, "cat", 100))


@pytest.mark.parametrize("backend", [*BACKENDS, "elastic", "cluster in shards", "opensearch"], indirect=True)
def test_huge_and_strange_texts(backend: Backend) -> None:
    terms = 2_000 if backend.on_server else 20_000  # more than a query of Lucene may have by default, 1,024
    documents = {
        "huge": " ".join(f"w{i}" for i in range(terms)),
        "word": "y" * 100_000 + " needle",
        "nul": "a\x00b c",
        "half": "half \ud83d character",
        "decomposed": "cafe\u0301",
    }
    index = backend.make(DEFAULT)
    index.add(list(documents), list(documents.values()), [{"m": "\ud83d"}] * len(documents))
    assert index.search([f"w{terms - 1}"], 5)[0].ids == ("huge",)
    assert index.search(["needle"], 5)[0].ids == ("word",)
    assert index.search(["character \ud83d"], 5, Filter.parse(["m=\ud83d"]))[0].ids == ("half",)
    assert index.search(["café"], 1)[0].ids == ("decomposed",)
    assert index.search([documents["huge"]], 1)[0].ids == ("huge",)  # a query of as many terms
    assert len(index.search(["y" * 100_000], 5)[0]) == 0


def test_equal_scores_come_in_row_order_at_any_cut(backend: Backend) -> None:
    index = backend.make(DEFAULT)
    ids = [f"d{i:03}" for i in range(300)]
    for start in range(0, 300, 30):  # many segments of different sizes
        part = ids[start : start + 30]
        index.add(part, ["red green blue" if int(i[1:]) % 3 else "red green blue grey" for i in part])
        index.search(["red"], 1)
    expected = [i for i in ids if int(i[1:]) % 3]
    for query in ("red", "blue red green"):
        for k in (1, 2, 7, 150, 200):
            hits = index.search([query], k)[0]
            assert list(hits.ids) == expected[:k]
            assert len(set(hits.scores.tolist())) == 1
        assert list(index.search([query], 201)[0].ids) == [*expected, "d000"]


ALPHABET = st.sampled_from(["a", "b", "c", "d", "e", "f"])
QUERY = st.lists(ALPHABET, max_size=8).map(" ".join)
TEXTS = st.lists(st.lists(ALPHABET, max_size=60).map(" ".join), min_size=1, max_size=25)


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, QUERY, st.integers(1, 30), st.integers(1, 4))
def test_random_corpora_rank_as_the_oracle(
    backend: Backend, texts: list[str], query: str, k: int, parts: int
) -> None:
    ranks_as_the_oracle(backend, texts, query, k, parts)


@pytest.mark.parametrize("backend", SERVERS, indirect=True)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, QUERY, st.integers(1, 30), st.integers(1, 4))
def test_random_corpora_rank_as_the_oracle_on_a_server(
    backend: Backend, texts: list[str], query: str, k: int, parts: int
) -> None:
    ranks_as_the_oracle(backend, texts, query, k, parts)


def ranks_as_the_oracle(backend: Backend, texts: list[str], query: str, k: int, parts: int) -> None:
    documents = {f"d{i}": text for i, text in enumerate(texts)}
    index = backend.make(DEFAULT)
    ids = list(documents)
    for part in np.array_split(np.arange(len(ids)), parts):  # a segment each
        index.add([ids[i] for i in part], [texts[i] for i in part])
        index.search(["a"], 1)
    hits = index.search([query], k)[0]
    best = dict(backend.oracle(documents, query, len(ids)))
    expected = backend.oracle(documents, query, k)
    np.testing.assert_allclose(hits.scores, [s for _, s in expected], rtol=1e-5)
    np.testing.assert_allclose(hits.scores, [best[i] for i in hits.ids], rtol=1e-5)
    for (a, x), (b, y) in zip(
        list(zip(hits.ids, hits.scores, strict=True))[:-1],
        list(zip(hits.ids, hits.scores, strict=True))[1:],
        strict=True,
    ):
        assert x > y or (x == y and int(a[1:]) < int(b[1:]))
    if isinstance(index, Bm25Index):
        index.close()
