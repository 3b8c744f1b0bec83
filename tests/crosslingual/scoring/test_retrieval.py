"""Retrieval by passes, products of pairs and the candidate graph, each against a slow and obvious oracle."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import kernels
from indexes.disk.reading import mapping_of
from indexes.kernels import products
from indexes.kernels.products import PostingLists, dots
from linker.crosslingual.pages.pages import column_sizes, count_terms, narrow
from linker.crosslingual.scoring import sparse
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.products import Scores, WeightedProduct
from linker.crosslingual.scoring.retrieval import Pass, fill, retrieve
from linker.crosslingual.scoring.sparse import on_disk, release, times
from linker.crosslingual.scoring.stages import Stages

RNG = np.random.default_rng(11)
KEYS = ([f"s{i}" for i in range(30)], [f"t{i}" for i in range(40)])


def matrix(rows: int, columns: int, empty: int | None = None) -> sp.csr_array:
    values = RNG.random((rows, columns)) * (RNG.random((rows, columns)) < 0.3)
    if empty is not None:
        values[empty] = 0
    return sp.csr_array(values.astype(np.float32))


def test_a_pass_keeps_the_best_targets_and_the_best_sources() -> None:
    values = RNG.random((30, 40)).astype(np.float32)
    rows, columns = np.array([3, 1, 20, 7, 8]), np.array([5, 2, 39, 11, 0, 7])
    scores = Scores({"a": lambda: WeightedProduct(values, np.eye(40, dtype=np.float32))})
    steps = (Pass("a", 2, 1), Pass("absent", 9, 9))
    graph = retrieve(scores, steps, rows, columns, KEYS, Stages(), "x")
    expected = set()
    for i in rows.tolist():
        best = sorted(columns.tolist(), key=lambda j: -values[i, j])[:2]
        expected |= {(i, j) for j in best}
    for j in columns.tolist():
        expected.add((max(rows.tolist(), key=lambda i: values[i, j]), j))
    assert set(zip(graph.rows.tolist(), graph.columns.tolist(), strict=True)) == expected
    assert not len(retrieve(scores, steps, rows[:0], columns, KEYS, Stages(), "x"))


def test_what_is_retrieved_does_not_depend_on_the_order_of_pages() -> None:
    product = WeightedProduct(matrix(30, 60), matrix(40, 60).T)
    scores, steps = Scores({"a": lambda: product}), (Pass("a", 5, 2),)
    first = retrieve(scores, steps, np.arange(30), np.arange(40), KEYS, Stages(), "x")
    order = RNG.permutation(30), RNG.permutation(40)
    again = retrieve(scores, steps, *order, KEYS, Stages(), "x")
    assert np.array_equal(first.rows, again.rows) and np.array_equal(first.columns, again.columns)


def test_pages_without_pairs_get_arbitrary_ones() -> None:
    graph = Graph.of(np.array([0, 0, 0, 2]), np.array([1, 2, 3, 9]), (4, 10))
    columns = np.array([1, 2, 3, 4, 5])
    full = fill(graph, np.array([0, 1, 2]), columns, 3, np.array([8, 9, 3, 1], np.uint64))
    assert full.columns[full.rows == 0].tolist() == [1, 2, 3]  # it had enough candidates
    for row in (1, 2):  # page 2's partner is not among the columns
        assert np.isin(full.columns[full.rows == row], columns).sum() == 3
    assert not (full.rows == 3).any()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=12))
def test_a_graph_holds_each_pair_once_in_order(pairs: list[tuple[int, int]]) -> None:
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = Graph.of(rows, columns, (4, 5))
    expected = sorted(set(pairs))
    assert list(zip(graph.rows.tolist(), graph.columns.tolist(), strict=True)) == expected
    by_column = [expected[i] for i in graph.by_column.tolist()]
    assert by_column == sorted(expected, key=lambda pair: (pair[1], pair[0]))
    for i in range(4):
        assert graph.begin[i + 1] - graph.begin[i] == sum(row == i for row, _ in expected)
    chosen = np.array([True, False, False, True])
    around = graph.around(chosen)
    columns_of = {c for r, c in expected if chosen[r]}
    assert list(zip(around.rows.tolist(), around.columns.tolist(), strict=True)) == [
        pair for pair in expected if pair[1] in columns_of
    ]


@pytest.mark.parametrize("compiled", [True, False])
def test_products_of_pairs_are_those_of_all_pairs(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(kernels, "load", lambda *_: None)
    elif kernels.load("products") is None:
        pytest.skip(kernels.status("products"))
    left, right = matrix(20, 50), matrix(30, 50, empty=4)
    everything = (left @ right.T).toarray()
    graph = Graph.of(RNG.integers(3, 20, 90), RNG.integers(0, 30, 90), (20, 30))
    found = dots(left, right, graph.begin, graph.columns)
    monkeypatch.setattr(products, "MANY", 20)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(3))
    np.testing.assert_array_equal(dots(left, right, graph.begin, graph.columns), found)
    monkeypatch.setattr(sparse, "MANY_ROWS", 7)
    np.testing.assert_allclose(times(left, right.T).toarray(), everything, rtol=1e-6)
    np.testing.assert_allclose(found, everything[graph.rows, graph.columns], rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(products, "TILE", 13)
    out = np.ones((20, 30), np.float32)
    PostingLists.of(sp.csr_array(right.T)).add_to(out, left)
    np.testing.assert_allclose(out, everything + 1, rtol=1e-5, atol=1e-6)
    masses = RNG.random(20).astype(np.float32), RNG.random(30).astype(np.float32)
    for product in (
        WeightedProduct(left, right.T, *masses),
        WeightedProduct(left.toarray(), right.toarray().T, *masses),
    ):
        expected = everything / (masses[0][:, None] + masses[1])
        np.testing.assert_allclose(
            product.pairs(graph), expected[graph.rows, graph.columns], rtol=1e-4, atol=1e-6
        )
        np.testing.assert_allclose(product.block(3, 9), expected[3:9], rtol=1e-4, atol=1e-6)


def test_a_matrix_that_points_outside_itself_is_refused() -> None:
    """Otherwise the compiled loops would read and write past the end of their arrays."""
    left, right = matrix(4, 6), matrix(5, 6)
    begin, others = np.array([0, 1, 1, 1, 2], np.int64), np.array([0, 4], np.int64)
    dots(left, right, begin, others)
    out = np.zeros((4, 5), np.float32)
    for wrong in (-1, 6):
        bad = left.copy()
        bad.indices[-1] = wrong
        with pytest.raises(ValueError, match="expected columns"):
            dots(bad, right, begin, others)
        with pytest.raises(ValueError, match="expected columns"):
            PostingLists.of(sp.csr_array(right.T)).add_to(out, bad)
        with pytest.raises(ValueError, match="expected columns"):
            PostingLists.of(bad)
    with pytest.raises(ValueError, match="expected rows"):
        dots(left, right, begin, np.array([0, 5], np.int64))
    with pytest.raises(ValueError, match="do not match"):
        dots(left, right, np.array([0, 1, 1, 1, 3], np.int64), others)
    with pytest.raises(ValueError, match="to be added to"):
        PostingLists.of(sp.csr_array(right.T)).add_to(out[:3], left)
    for field, value in (("indptr", np.array([0, 9, 3, 9, 12], np.int32)), ("data", left.data[:-1])):
        bad = left.copy()
        setattr(bad, field, value)
        with pytest.raises(ValueError, match="invalid CSR matrix"):
            PostingLists.of(bad)


@pytest.mark.parametrize("longer", [False, True])
def test_pairs_are_read_from_the_side_with_the_shorter_rows(longer: bool) -> None:
    short, long = matrix(20, 50), sp.csr_array(RNG.random((30, 50)).astype(np.float32))
    product = WeightedProduct(long, short.T) if longer else WeightedProduct(short, long.T)
    n, m = product.shape
    graph = Graph.of(RNG.integers(3, n, 90), RNG.integers(0, m, 90), (n, m))
    expected = product.block(0, n)[graph.rows, graph.columns]
    np.testing.assert_allclose(product.pairs(graph), expected, rtol=1e-5, atol=1e-6)


def made(rows: int, columns: int, seed: int) -> sp.csr_array:
    values = np.random.default_rng(seed).random((rows, columns), np.float32)
    return sp.csr_array(np.where(values > 0.7, values, 0))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 99))
def test_a_matrix_on_the_disk_is_the_same_after_its_release(rows: int, columns: int, seed: int) -> None:
    matrix = made(rows, columns, seed)
    resting = on_disk(matrix)
    assert (mapping_of(resting.data) is not None) == (matrix.nnz > 0)
    for _ in range(2):
        np.testing.assert_array_equal(resting.toarray(), matrix.toarray())
        np.testing.assert_array_equal(column_sizes(resting), (matrix.toarray() > 0).sum(axis=0))
        release(resting)
    release(matrix)
    release(matrix.toarray())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full plays the full disk")
def test_a_full_disk_leaves_the_matrix_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = made(300, 300, 0)
    monkeypatch.setattr(
        "linker.crosslingual.scoring.sparse.TemporaryFile",
        lambda: Path("/dev/full").open("r+b", buffering=0),  # noqa: SIM115 - `on_disk` closes it
    )
    assert on_disk(matrix) is matrix


def test_columns_of_counts_take_four_bytes() -> None:
    """If row offsets are int64, scipy makes int64 columns, which made a matrix of n-grams 50 % larger."""
    terms = count_terms(["one two", "two"], str.split)
    assert terms.counts.indices.dtype == terms.counts[[1]].indices.dtype == np.int32
    assert narrow(np.array([0, 1 << 31])).dtype == np.int64
