"""Specifics of FAISS: flat equals exact on any small data, the approximate paths, persistence, damage."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.arrays import normalised
from indexes.interface import DamagedError, Filter, IndexesError, Mask, Matrix, MissingExtraError, RowArray
from indexes.rows import Rows
from indexes.vectors import faiss_files
from indexes.vectors.faiss_index import FaissIndex
from tests.contract.exact import ExactIndex

DIM = 23  # odd, so that the codes are padded
APPROXIMATE = ("hnsw", "pq", "ivfpq")
ROWS = 5000  # enough for a graph search to cost less than a scan of all rows


def clustered(rows: int, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).standard_normal((40, DIM))
    return (centres[rng.integers(40, size=rows)] + 0.7 * rng.standard_normal((rows, DIM))).astype(np.float32)


def ids_from(start: int, stop: int) -> list[str]:
    return [f"d{i}" for i in range(start, stop)]


def filled(kind: str, rows: int = ROWS, exact_below: int = 500) -> FaissIndex:
    index = FaissIndex(DIM, kind, exact_below=exact_below)
    index.add(ids_from(0, rows), clustered(rows), [{"group": i % 100} for i in range(rows)])
    return index


def same_answers(a: FaissIndex, b: FaissIndex, k: int = 10) -> bool:
    queries = clustered(30, seed=1)
    (rows, scores), (other_rows, other_scores) = a.search_rows(queries, k), b.search_rows(queries, k)
    return np.array_equal(rows, other_rows) and np.array_equal(scores, other_scores)


def forbid(monkeypatch: pytest.MonkeyPatch, index: FaissIndex, name: str) -> None:
    def fail(*_: object) -> None:
        raise AssertionError(f"{name} must not be used here")

    monkeypatch.setattr(index, name, fail)


# Few directions with small integers: duplicates, opposites, zeros and equal cosines are common.
VECTOR = st.lists(st.integers(-2, 2), min_size=3, max_size=3)


@settings(max_examples=150, deadline=None)
@given(
    vectors=st.lists(VECTOR, min_size=1, max_size=60), queries=st.lists(VECTOR, min_size=1, max_size=8),
    removed=st.sets(st.integers(0, 59), max_size=20), group=st.sampled_from([None, "0", "1", "7"]),
    k=st.integers(1, 70),
)  # fmt: skip
def test_flat_equals_exact(
    vectors: list[list[int]], queries: list[list[int]], removed: set[int], group: str | None, k: int
) -> None:
    ids = ids_from(0, len(vectors))
    indexes = FaissIndex(3), ExactIndex(3)
    for index in indexes:
        index.add(ids, np.array(vectors, dtype=np.float32), [{"group": i % 3} for i in range(len(ids))])
        index.remove([f"d{i}" for i in removed if i < len(ids)])
    where = None if group is None else Filter((("group", (group,)),))
    matrix = np.array(queries, dtype=np.float32)
    (rows, scores), (want_rows, want) = (i.search_rows(matrix, k, where) for i in indexes)
    np.testing.assert_allclose(scores, want, atol=1e-6)
    for q, (mine, theirs) in enumerate(zip(rows.tolist(), want_rows.tolist(), strict=True)):
        score = dict(zip(theirs, want[q].tolist(), strict=True))
        for rank, (a, b) in enumerate(zip(mine, theirs, strict=True)):  # they differ only among ties
            assert a == b or abs(score.get(a, float(want[q, -1])) - score[b]) < 1e-6, (rank, a, b)
        for i, row in enumerate(mine):  # among equal vectors, lower rows come first
            twins = [r for r in mine[i + 1 :] if r >= 0 and row >= 0 and vectors[r] == vectors[row]]
            assert all(r > row for r in twins)


@pytest.mark.parametrize("batch", [1, 20])
@pytest.mark.parametrize("removed", [0, 1])
def test_ties_at_the_cut_are_settled(batch: int, removed: int) -> None:
    """Hundreds of equal rows, more than a scan fetches; the first ones must be returned, whatever FAISS fetched."""
    vectors = np.repeat(clustered(5), 300, axis=0)
    index = FaissIndex(DIM)
    index.add(ids_from(0, len(vectors)), vectors)
    index.remove(ids_from(0, removed))
    rows, scores = index.search_rows(vectors[:batch], 40)
    assert rows.tolist() == [list(range(removed, 40 + removed))] * batch
    assert len(np.unique(scores)) == 1


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_the_approximate_path_is_taken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(kind)
    forbid(monkeypatch, index, "_exact")
    assert len(index.search(clustered(30, seed=1), 10)[0]) == 10
    index.remove(ids_from(0, 100))
    found = {i for hits in index.search(clustered(30, seed=1), 10) for i in hits.ids}
    assert found.isdisjoint(ids_from(0, 100))


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_few_rows_are_searched_exactly(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small, selective = filled(kind, rows=499), filled(kind)
    for index in (small, selective):
        index.build()
        forbid(monkeypatch, index, "_approximate")
    assert same_answers(small, filled("flat", rows=499))
    where = Filter((("group", ("1",)),))
    rows, _ = selective.search_rows(clustered(30), 50, where)
    assert sorted(rows[0].tolist()) == list(range(1, ROWS, 100))


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_missing_proposals_are_made_up_for(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index, exact = filled(kind), filled("flat")
    index.build()
    generator = index._generator
    assert generator is not None
    generate = generator.generate

    def lazy(queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        rows = generate(queries, fetch, mask)
        rows[::2, 3:] = -1
        return rows

    monkeypatch.setattr(generator, "generate", lazy)
    queries = clustered(30, seed=1)
    np.testing.assert_array_equal(
        index.search_rows(queries, 10)[0][::2], exact.search_rows(queries, 10)[0][::2]
    )


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_building_leaves_the_vectors_alone(kind: str) -> None:
    """The graph grows over vectors that are in place already: they are neither copied, moved nor changed."""
    index = filled(kind)
    before, address = index.vectors.copy(), index.vectors.ctypes.data
    index.build()
    np.testing.assert_array_equal(index.vectors, before)
    np.testing.assert_array_equal(before, normalised(clustered(ROWS)))
    assert index.vectors.ctypes.data == address
    index.add(ids_from(ROWS, ROWS + 100), clustered(100, seed=3))
    index.build()
    np.testing.assert_array_equal(index.vectors[ROWS:], normalised(clustered(100, seed=3)))


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_an_interrupted_build_starts_again(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(kind)
    faiss = faiss_files.load_faiss()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        for name in ("IndexHNSWFlat", "IndexPQFastScan", "IndexIVFPQFastScan"):
            patch.setattr(getattr(faiss, name), "add", interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.build()
    assert len(index.vectors) == ROWS
    assert same_answers(index, filled(kind))


def test_cells_grow_with_the_index() -> None:
    index = filled("ivfpq", rows=600)
    index.build()
    index.add(ids_from(600, 6000), clustered(5400, seed=5))
    found = index.search(clustered(6000 - 600, seed=5)[:50], 1)
    assert np.mean([hits.ids[0] == f"d{600 + i}" for i, hits in enumerate(found)]) > 0.95


@pytest.mark.parametrize("kind", ["flat", *APPROXIMATE])
def test_save_and_restore(kind: str, tmp_path: Path) -> None:
    index = filled(kind)
    index.remove(["d3"])
    assert (index.save_graph(tmp_path / "graph") is not None) == (kind != "flat")
    rows = Rows()
    rows.restore(ids_from(0, ROWS), index._rows.dead)
    again = FaissIndex(DIM, kind, exact_below=500)
    again.restore(rows, index.vectors)
    if kind != "flat":
        again.load_graph(tmp_path / "graph")
        assert (tmp_path / "graph").stat().st_size < index.vectors.nbytes * 4
    np.testing.assert_array_equal(again.vectors, index.vectors)
    assert len(again) == ROWS - 1
    assert same_answers(index, again)


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_a_graph_that_lacks_the_last_rows_catches_up(kind: str, tmp_path: Path) -> None:
    index = filled(kind)
    assert index.save_graph(tmp_path / "graph")
    new = clustered(300, seed=4)
    rows = Rows()
    rows.restore(ids_from(0, ROWS + 300), np.empty(0, dtype=np.int64))
    later = FaissIndex(DIM, kind, exact_below=500)
    later.restore(rows, np.vstack([index.vectors, normalised(new)]))
    later.load_graph(tmp_path / "graph")
    assert np.mean([h.ids[0] == f"d{ROWS + i}" for i, h in enumerate(later.search(new, 1))]) > 0.95


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_nothing_to_save_below_the_limit(kind: str, tmp_path: Path) -> None:
    assert not filled(kind, rows=20).save_graph(tmp_path / "graph")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", APPROXIMATE)
def test_a_damaged_graph_is_named(kind: str, tmp_path: Path) -> None:
    path, index = tmp_path / "graph", filled(kind)
    index.save_graph(path)
    good = path.read_bytes()
    smaller, other = tmp_path / "smaller", tmp_path / "other"
    filled(kind, rows=1000).save_graph(smaller)
    filled("ivfpq" if kind == "hnsw" else "hnsw").save_graph(other)
    contents = [b"", b"x" * 50, good[:-100], good[: len(good) // 2], other.read_bytes()]
    if kind != "pq":  # there, one centroid moves, which only a checksum reveals
        # in the hnsw file: a length of terabytes
        contents.append(good[:93] + bytes([good[93] ^ 16]) + good[94:])
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(DamagedError, match=str(path)):
            filled(kind).load_graph(path)
    path.unlink()
    with pytest.raises(DamagedError, match=str(path)):
        index.load_graph(path)
    path.write_bytes(good)
    with pytest.raises(DamagedError, match="another index"):
        filled(kind, rows=1000).load_graph(path)
    assert same_answers(index, filled(kind))  # a failed load leaves the index as it was


def test_no_flipped_byte_crashes_the_process(tmp_path: Path) -> None:
    index = filled("hnsw", rows=600)
    path = tmp_path / "graph"
    index.save_graph(path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    offsets = [*rng.integers(0, 300, 60), *rng.integers(0, len(good), 60)]
    damaged = 0
    for offset in offsets:
        content = bytearray(good)
        content[offset] ^= int(rng.integers(1, 256))
        path.write_bytes(content)
        copy = FaissIndex(DIM, "hnsw", exact_below=10**9)
        copy.restore(index._rows, index.vectors)
        try:
            copy.load_graph(path)
        except DamagedError:
            damaged += 1
        assert len(copy.search(clustered(3), 5)[0]) == 5
    assert damaged > len(offsets) // 2


def test_threads_may_search_an_index_that_is_not_built_yet() -> None:
    index, queries = filled("hnsw"), clustered(20, seed=1)
    answers: list[RowArray] = []
    threads = [
        threading.Thread(target=lambda: answers.append(index.search_rows(queries, 5)[0])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(np.array_equal(a, answers[0]) for a in answers)


def test_the_view_outlives_its_index() -> None:
    view = filled("flat").vectors
    np.testing.assert_array_equal(view, normalised(clustered(ROWS)))
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 0


def test_arguments_are_checked() -> None:
    with pytest.raises(IndexesError, match="choose auto, flat, hnsw, pq, ivfpq"):
        FaissIndex(3, "flatt")
    for make in (FaissIndex, ExactIndex):
        with pytest.raises(IndexesError, match="at least 1, not 0"):
            make(0)
    with pytest.raises(IndexesError, match="expected 2 vectors"):
        rows = Rows()
        rows.append(["a", "b"])
        FaissIndex(3).restore(rows, np.ones((3, 3), dtype=np.float32))
    with pytest.raises(IndexesError, match="no graph"):
        FaissIndex(3).load_graph(Path("graph"))


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    faiss_files.load_faiss.cache_clear()
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(
        MissingExtraError, match=r"vector search needs the extra 'cpu': pip install '.*\[cpu\]'"
    ):
        FaissIndex(3)


def test_importing_does_not_load_faiss() -> None:
    code = "import sys, indexes.vectors.faiss_index; sys.exit('faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_normalised_against_the_definition() -> None:
    vectors = np.array([[3, 4, 0], [0, 0, 0], [-1e-30, 0, 0], [1e38, 1e38, 1e38]], dtype=np.float32)
    expected = np.array([[0.6, 0.8, 0], [0, 0, 0], [-1, 0, 0], [3**-0.5] * 3])
    np.testing.assert_allclose(normalised(vectors), expected, atol=1e-7)
