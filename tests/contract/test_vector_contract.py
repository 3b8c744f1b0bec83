"""One suite for every vector backend, compared with the exact one. A new backend is one more line in BACKENDS."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest

from indexes.cluster.index import new_name
from indexes.interface import (
    BadIdError,
    BadVectorError,
    DuplicateIdError,
    Filter,
    Hits,
    IndexesError,
    Matrix,
    RowSearch,
    ScoreArray,
    UnknownIdError,
    VectorIndex,
)
from indexes.kinds import KINDS, on_server
from indexes.vectors.certified import ByteScan
from indexes.vectors.faiss_index import FaissIndex
from tests.contract import cluster
from tests.contract.exact import ExactIndex

DIM, ROWS, TOPICS = 30, 6_000, 300


@dataclass(frozen=True)
class Backend:
    """`recall`: minimum share of the exact top ten that must be found; 1 also promises ties in row order."""

    make: Callable[[int], VectorIndex]
    recall: float = 1.0


BACKENDS = {
    "exact": Backend(ExactIndex),
    "flat": Backend(partial(FaissIndex, kind="flat")),
    "hnsw": Backend(partial(FaissIndex, kind="hnsw", exact_below=1000), recall=0.95),
    "pq": Backend(partial(FaissIndex, kind="pq", exact_below=1000), recall=0.95),
    "ivfpq": Backend(partial(FaissIndex, kind="ivfpq", exact_below=1000), recall=0.9),
}
SERVERS = {  # name and recall
    "elastic-flat": 1.0, "elastic-hnsw": 0.97, "elastic-int8_hnsw": 0.97, "cluster elastic-flat": 1.0,
    "cluster elastic-hnsw": 0.97, "opensearch-flat": 1.0, "opensearch-hnsw": 0.97,
}  # fmt: skip


def certified(dim: int) -> VectorIndex:
    """A flat index that scans codes from the first row."""
    index, scan = FaissIndex(dim), ByteScan()
    setattr(index, "_exact_scan", lambda *_: scan)  # noqa: B010 - mypy refuses to replace a method
    return index


if ByteScan.available(DIM):
    BACKENDS["certified"] = Backend(certified)


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Backend]]:
    """Makers of indexes on a server, which are dropped at the end."""
    made: list[cluster.OnCluster | cluster.Beside] = []

    def make(kind: str, dim: int) -> VectorIndex:
        if on_server(kind):  # other kinds keep a directory, and are named as on the server
            server = KINDS[kind].home
            address = f"{server}+{request.getfixturevalue(server)}/{new_name('contract')}"
            made.append(cluster.vectors(address, kind, dim))
            return made[-1]
        url: str = request.getfixturevalue("elastic")
        made.append(cluster.Beside(url, kind, dim))
        return made[-1]

    def named(name: str) -> str:
        return name.removeprefix("cluster ") if " " in name else name.removeprefix("elastic-")

    yield lambda name: Backend(partial(make, named(name)), SERVERS[name])
    for index in made:
        index.close()


@pytest.fixture(params=[*BACKENDS, *SERVERS])
def backend(request: pytest.FixtureRequest, servers: Callable[[str], Backend]) -> Backend:
    name: str = request.param
    return servers(name) if name in SERVERS else BACKENDS[name]


@pytest.fixture
def index(backend: Backend) -> VectorIndex:
    """An empty index of three dimensions."""
    return backend.make(3)


def text_like(rows: int, seed: int) -> Matrix:
    """Vectors around topics of unequal size, like text vectors, with duplicates and zeros for empty texts."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((TOPICS, DIM))
    topics = rng.zipf(1.3, rows) % TOPICS
    vectors = (centres[topics] + 0.8 * rng.standard_normal((rows, DIM))).astype(np.float32)
    vectors[100::50] = vectors[50]
    vectors[33::400] = 0
    return vectors


IDS = [f"d{i}" for i in range(ROWS)]
METADATA = [{"lang": ["en", "de", "fr"][i % 3], "day": i % 500} for i in range(ROWS)]
QUERIES = text_like(80, seed=2)
VECTORS = text_like(ROWS, seed=1)


def filled(make: Callable[[int], VectorIndex]) -> VectorIndex:
    """Add the text-like vectors in two unequal batches, and remove some."""
    index = make(DIM)
    index.add(IDS[:4500], VECTORS[:4500], METADATA[:4500])
    index.search(QUERIES[:1], 1)  # an approximate index is trained here; the rest is added later
    index.add(IDS[4500:], VECTORS[4500:], METADATA[4500:])
    index.remove(IDS[::11])
    return index


@pytest.fixture(scope="module")
def built() -> dict[str, VectorIndex]:
    return {}


@pytest.fixture(scope="module")
def exact() -> Callable[[str, int], list[Hits]]:
    """Give the exact index's results for a filter of WHERE; each is computed once."""
    oracle = filled(ExactIndex)
    return cache(lambda where, k: oracle.search(QUERIES, k, Filter.parse(WHERE[where])))


@pytest.fixture(params=[*BACKENDS, *SERVERS])
def large(
    request: pytest.FixtureRequest, servers: Callable[[str], Backend], built: dict[str, VectorIndex]
) -> tuple[VectorIndex, float]:
    """An index of 6,000 vectors minus the removed ones, and its promised recall."""
    name: str = request.param
    backend = servers(name) if name in SERVERS else BACKENDS[name]
    if name not in built:
        built[name] = filled(backend.make)
    return built[name], backend.recall


def unit(*angles: float) -> Matrix:
    """Vectors in the plane of the first two axes; cosines are cosines of the angle differences."""
    return np.array([[np.cos(a), np.sin(a), 0] for a in angles], dtype=np.float32)


def ids_of(index: VectorIndex, queries: Matrix, k: int, where: Sequence[str] = ()) -> list[tuple[str, ...]]:
    return [hits.ids for hits in index.search(queries, k, Filter.parse(where))]


def test_an_empty_index_answers_with_nothing_and_refuses_what_is_wrong(index: VectorIndex) -> None:
    assert isinstance(index, VectorIndex)
    assert isinstance(index, RowSearch)
    assert index.dim == 3
    index.add([], np.empty((0, 3), dtype=np.float32))
    assert ids_of(index, unit(0, 1), 5) == [(), ()]
    assert ids_of(index, unit(0), 5, ["a=b"]) == [()]
    for k in (0, -1):
        with pytest.raises(IndexesError, match=f"k must be at least 1, not {k}"):
            index.search(unit(0), k)
    for bad in (np.nan, np.inf, -np.inf):
        vectors = unit(0, 1)
        vectors[1, 2] = bad
        with pytest.raises(BadVectorError, match=r"id 'b'.*NaN or infinity"):
            index.add(["a", "b"], vectors)
        with pytest.raises(BadVectorError, match="vector 1 holds NaN"):
            index.search(vectors, 1)
    for shaped in (np.ones((1, 4)), np.ones(3), np.ones((2, 3))):
        with pytest.raises(BadVectorError):
            index.add(["a"], shaped.astype(np.float32))
    with pytest.raises(BadVectorError, match="expected"):
        index.search(np.ones((1, 2), dtype=np.float32), 1)
    assert len(index) == 0


def test_scores_are_cosines_best_first(index: VectorIndex) -> None:
    index.add(["a", "b", "c"], unit(0.1, 0.5, 3.0) * np.array([[1], [20], [0.3]], dtype=np.float32))
    (hits,) = index.search(unit(0.4) * 7, 10**9)
    assert hits.ids == ("b", "a", "c")
    np.testing.assert_allclose(hits.scores, np.cos([0.1, 0.3, 2.6]), atol=1e-6)
    assert hits.scores.dtype == np.float32
    assert index.search(np.empty((0, 3), dtype=np.float32), 5) == []


def test_values_near_the_ends_of_float32(index: VectorIndex) -> None:
    index.add(["huge", "tiny"], unit(0, 1) * np.array([[3e38], [1e-38]], dtype=np.float32))
    (hits,) = index.search(unit(0) * np.float32(1e30), 2)
    np.testing.assert_allclose(hits.scores, np.cos([0, 1]), atol=1e-6)


def test_equal_vectors_come_in_order_of_arrival(index: VectorIndex) -> None:
    index.add(["z", "y", "far", "x"], unit(0.2, 0.2, 2, 0.2))
    index.add(["a"], unit(0.2))
    assert ids_of(index, unit(0), 3) == [("z", "y", "x")]
    assert ids_of(index, unit(0), 5) == [("z", "y", "x", "a", "far")]


def test_more_equal_vectors_than_asked_for(index: VectorIndex) -> None:
    index.add([f"d{i}" for i in range(200)], unit(*[1] * 100, *[0] * 100))
    assert ids_of(index, unit(0), 3) == [("d100", "d101", "d102")]
    assert ids_of(index, unit(*[0] * 20), 102)[7][-2:] == ("d0", "d1")


def test_zero_vectors_score_zero(index: VectorIndex) -> None:
    index.add(["none", "some", "opposite"], np.vstack([np.zeros(3), unit(0), unit(np.pi)]))
    (hits,) = index.search(unit(0), 3)
    assert hits.ids == ("some", "none", "opposite")
    assert hits.scores[1] == 0
    (hits,) = index.search(np.zeros((1, 3), dtype=np.float32), 3)
    assert hits.ids == ("none", "some", "opposite")
    assert (hits.scores == 0).all()


def test_adding_is_all_or_nothing(index: VectorIndex) -> None:
    index.add(["a"], unit(0))
    for ids, error in (
        (["b", "a"], DuplicateIdError),
        (["b", "b"], DuplicateIdError),
        (["b", ""], BadIdError),
    ):
        with pytest.raises(error):
            index.add(ids, unit(1, 2))
    with pytest.raises(ValueError, match="metadata"):
        index.add(["b", "c"], unit(1, 2), [{}])
    assert ids_of(index, unit(0), 5) == [("a",)]
    index.add(["b"], unit(1))
    assert ids_of(index, unit(1), 5) == [("b", "a")]


def test_removing_is_all_or_nothing(index: VectorIndex) -> None:
    index.add(["a", "b"], unit(0, 1))
    with pytest.raises(UnknownIdError, match="'c'"):
        index.remove(["a", "c"])
    assert len(index) == 2
    index.remove(["a"])
    assert ids_of(index, unit(0), 5) == [("b",)]
    with pytest.raises(UnknownIdError):
        index.remove(["a"])
    index.remove(["b"])
    assert ids_of(index, unit(0), 5) == [()]


def test_a_removed_id_can_come_back(index: VectorIndex) -> None:
    index.add(["a", "b"], unit(0, 0), [{"v": 1}, {"v": 1}])
    index.remove(["a"])
    index.add(["a"], unit(0), [{"v": 2}])
    assert ids_of(index, unit(0), 5) == [("b", "a")]  # it has a new row, so it comes last among ties
    assert ids_of(index, unit(0), 5, ["v=1"]) == [("b",)]
    assert len(index) == 2


def test_filters(index: VectorIndex) -> None:
    metadata = [{"lang": "en", "tags": ["x", "y"]}, {"lang": "de", "tags": ["y"]}, {}]
    index.add(["a", "b", "c"], unit(0, 0.1, 0.2), metadata)
    assert ids_of(index, unit(0), 5, ["lang=en", "lang=de"]) == [("a", "b")]
    assert ids_of(index, unit(0), 5, ["tags=y", "lang=de"]) == [("b",)]
    assert ids_of(index, unit(0), 5, ["unknown=1"]) == [()]
    assert ids_of(index, unit(0), 5, ["lang=fr"]) == [()]


WHERE = {"everything": [], "broad": ["lang=en", "lang=de"], "narrow": ["day=7"], "none": ["day=x"],
         "between": ["day>=100", "day<140"], "not": ["lang!=en", "day!=3|4"]}  # fmt: skip


@pytest.mark.parametrize(
    ("where", "k"),
    [*((where, 10) for where in WHERE), *itertools.product(("everything", "narrow"), (1, 300))],
)
def test_finds_what_the_exact_index_finds(
    large: tuple[VectorIndex, float], exact: Callable[[str, int], list[Hits]], where: str, k: int
) -> None:
    index, recall = large
    got, want = index.search(QUERIES, k, Filter.parse(WHERE[where])), exact(where, k)
    assert [len(hits) for hits in got] == [len(hits) for hits in want]
    for hits in got:
        assert len(set(hits.ids)) == len(hits)
        assert (np.diff(hits.scores) <= 0).all()
    if not len(want[0]):
        return
    scores, best = (np.array([h.scores for h in all_hits]) for all_hits in (got, want))
    # A hit that scores no less than the exact last one is as good: any of the ties may be chosen.
    assert (scores >= best[:, -1:] - 1e-6).mean() >= recall
    if recall == 1:
        np.testing.assert_allclose(scores, best, atol=1e-5)
        assert_same_order([h.ids for h in got], [h.ids for h in want], best)


GRAPHS = [
    name for name in SERVERS if "hnsw" in name
]  # the others compare with every vector, as `large` shows
COPIED = [
    *itertools.product(sorted(BACKENDS.keys() - {"exact"}), (0, 1e-7, 1e-5)),
    *itertools.product(GRAPHS, (0,)),
]


@pytest.mark.parametrize(("backend", "noise"), COPIED, indirect=["backend"])
def test_copies_hide_no_other_documents(backend: Backend, noise: float) -> None:
    """Retweets: 40 % of rows are one vector, 10 others occur a hundred times. Graphs once lost most of the rest."""
    shuffled = np.random.default_rng(5).permutation(ROWS)
    vectors = VECTORS.copy()
    vectors[shuffled[:2400]] = vectors[50]
    for start in range(2400, 3400, 100):
        vectors[shuffled[start : start + 100]] = vectors[shuffled[start]]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    vectors += (noise * np.random.default_rng(6).standard_normal(vectors.shape)).astype(np.float32)
    index, oracle = backend.make(DIM), ExactIndex(DIM)
    for one in (index, oracle):
        one.add(IDS[:3500], vectors[:3500])
        one.search(QUERIES[:1], 1)  # an approximate index is built here; the rest is added later
        one.add(IDS[3500:], vectors[3500:])
    scores, exact = (np.array([h.scores for h in i.search(QUERIES, 10)]) for i in (index, oracle))
    assert (scores >= exact[:, -1:] - max(1e-6, 5 * noise)).mean() >= min(backend.recall, 0.94)


def assert_same_order(got: list[tuple[str, ...]], want: list[tuple[str, ...]], scores: ScoreArray) -> None:
    """Compare ids; if they differ, the two must have equal scores up to the last bits of float32."""
    for mine, theirs, row in zip(got, want, scores, strict=True):
        score = dict(zip(theirs, row.tolist(), strict=True))
        for rank, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            assert a == b or abs(score.get(a, row[-1]) - row[rank]) < 1e-6
        assert len(set(mine) - set(theirs)) <= 1


def test_duplicates_come_in_row_order(large: tuple[VectorIndex, float]) -> None:
    """120 rows hold the vector of row 50; every eleventh row is removed."""
    index, recall = large
    alive = [f"d{i}" for i in [50, *range(100, ROWS, 50)] if i % 11]
    (hits,) = index.search(VECTORS[50:51], 100)
    found = [int(i[1:]) for i in hits.ids]
    assert found == sorted(found)
    assert set(hits.ids) <= set(alive)
    if recall == 1:
        assert list(hits.ids) == alive[:100]


@pytest.mark.parametrize("where", [WHERE[name] for name in ("everything", "narrow", "not")])
def test_one_query_or_many_makes_no_difference(large: tuple[VectorIndex, float], where: list[str]) -> None:
    index, _ = large
    many = index.search(QUERIES, 10, Filter.parse(where))
    for size in (1, 3, 7):
        few = [
            h
            for i in range(0, 21, size)
            for h in index.search(QUERIES[i : i + size], 10, Filter.parse(where))
        ]
        for a, b in zip(few, many[:21], strict=True):
            assert a.ids == b.ids
            np.testing.assert_array_equal(a.scores, b.scores)


def test_rows_and_hits_agree(large: tuple[VectorIndex, float]) -> None:
    index, _ = large
    assert isinstance(index, RowSearch)
    rows, scores = index.search_rows(QUERIES, 30, Filter.parse(["day=7"]))
    assert rows.shape == scores.shape == (len(QUERIES), 30)
    assert rows.dtype == np.int64
    assert ((rows < 0) == np.isneginf(scores)).all()
    for hits, row in zip(index.search(QUERIES, 30, Filter.parse(["day=7"])), rows, strict=True):
        ids = index.collection.rows.ids if isinstance(index, cluster.OnCluster) else IDS
        assert hits.ids == tuple(ids[i] for i in row if i >= 0)
