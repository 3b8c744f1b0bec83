"""The certified scan gives the same results as scoring every row: ids, scores and order, however close the rows."""

import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import kernels
from indexes.arrays import normalised
from indexes.interface import Filter, Mask, Matrix, RowArray, ScoreArray
from indexes.vectors import certified, flat
from indexes.vectors import faiss_index as vectors
from indexes.vectors.certified import ByteScan, _Queries
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.flat import exact_scores as scores

ROOT = Path(__file__).parents[3]
compiled = pytest.mark.skipif(
    kernels.load("scan") is None, reason=f"the compiled scan: {kernels.status('scan')}"
)


def oracle(rows: Matrix, queries: Matrix, k: int, mask: Mask | None = None) -> tuple[RowArray, ScoreArray]:
    """Score every row in float64, round to float32, sort by falling score and rising row."""
    allowed = np.arange(len(rows)) if mask is None else np.flatnonzero(mask)
    exact = (queries.astype(np.float64) @ rows[allowed].astype(np.float64).T).astype(np.float32)
    best = np.array([np.lexsort((allowed, -row))[:k] for row in exact])
    return allowed[best], np.take_along_axis(exact, best, axis=1)


def assert_certified(
    rows: Matrix, queries: Matrix, k: int, mask: Mask | None = None, threads: int = 1
) -> None:
    """Compare with the oracle; if ids differ, the float64 scores differ only in float32's last bit."""
    got_rows, got = ByteScan(lambda: threads).search(rows, queries, k, mask)
    want_rows, want = oracle(rows, queries, k, mask)
    np.testing.assert_array_max_ulp(got, want, maxulp=1)
    same = got == want
    steps = np.diff(want, axis=1, prepend=np.inf) < 0
    distinct = same & steps & np.roll(np.c_[steps, np.ones(len(want), bool)], -1, axis=1)[:, :-1]
    np.testing.assert_array_equal(got_rows[distinct], want_rows[distinct])
    assert (got_rows == want_rows).mean() > 0.99
    order = np.diff(got, axis=1) < 0
    assert (order | (np.diff(got_rows, axis=1) > 0)).all()  # best first, ties in row order


def cluster(rows: int, dim: int, spread: float, seed: int = 0, centres: int = 5) -> Matrix:
    """Rows around few centres; a small spread makes them near-duplicates."""
    rng = np.random.default_rng(seed)
    middle = np.random.default_rng(1).standard_normal((centres, dim))
    return (middle[rng.integers(centres, size=rows)] + spread * rng.standard_normal((rows, dim))).astype(
        np.float32
    )


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a few thousand rows fill several blocks and the candidate buffer several times."""
    monkeypatch.setattr(certified, "BLOCK", 1024)
    monkeypatch.setattr(certified, "ROOM", 64)
    monkeypatch.setattr(certified, "SERIAL", 0)


@compiled
@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4, 1e-6, 0.0])
@pytest.mark.parametrize("k", [1, 5, 100])
def test_near_duplicates(spread: float, k: int) -> None:
    rows, queries = normalised(cluster(5000, 48, spread)), normalised(cluster(20, 48, 0.1, seed=2))
    assert_certified(rows, queries, k)


@compiled
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 15, 16, 17, 63, 250, 256])
@pytest.mark.parametrize("queries", [1, 5, 6, 7, 30])
def test_sizes(dim: int, queries: int) -> None:
    rows = normalised(cluster(1500 + dim, dim, 1.0))
    assert_certified(rows, normalised(cluster(queries, dim, 1.0, seed=3)), 7)


@compiled
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("queries", [1, 2, 100])
def test_threads(threads: int, queries: int) -> None:
    rows = normalised(cluster(6000, 20, 1.0))
    assert_certified(rows, normalised(cluster(queries, 20, 1.0, seed=3)), 10, threads=threads)


@compiled
def test_general_vectors() -> None:
    """Lengths over twelve orders of magnitude, some dimensions a thousand times as large as others."""
    rng = np.random.default_rng(0)
    rows = cluster(4000, 40, 1.0) * np.float32(10) ** rng.uniform(-6, 6, (4000, 1)).astype(np.float32)
    rows[:, 3] *= 1000
    queries = cluster(20, 40, 1.0, seed=2) * np.float32(1e-5)
    assert_certified(rows, queries, 10)


@compiled
@settings(max_examples=100, deadline=None)
@given(data=st.data(), dim=st.integers(1, 9), k=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_any_small_data(data: st.DataObject, dim: int, k: int, seed: int) -> None:
    """Integers: duplicates, zeros and ties are common, and float64 is exact, so ids are equal."""
    rng = np.random.default_rng(seed)
    count = data.draw(st.integers(k, 3000))
    rows = rng.integers(-2, 3, (count, dim)).astype(np.float32)
    queries = rng.integers(-3, 4, (data.draw(st.integers(1, 14)), dim)).astype(np.float32)
    mask = None
    if data.draw(st.booleans()):
        mask = rng.random(count) < data.draw(st.sampled_from([0.05, 0.5, 0.95]))
        mask[rng.choice(count, k, replace=False)] = True
    for got, want in zip(
        ByteScan().search(rows, queries, k, mask), oracle(rows, queries, k, mask), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@compiled
def test_the_bound_holds_and_is_used() -> None:
    """|q·x − q̂·x̂| ≤ ‖q̂‖·r + e·N for every pair; half of it would not hold for vectors chosen to attain it."""
    rows, queries = normalised(cluster(640, 32, 1.0)), normalised(cluster(30, 32, 1.0, seed=5))
    block = certified._encode(rows)
    codes = block.codes.reshape(-1, 8, 16, 4).transpose(0, 2, 1, 3).reshape(640, 32).astype(np.float64) - 128
    rounded = codes * block.scales[:, None]
    np.testing.assert_allclose(np.linalg.norm(rows - rounded, axis=1), block.errors, rtol=1e-5)
    coded = certified._Queries.code(queries, block.longest)
    own = np.rint(queries / coded.scale[:, None]) * coded.scale[:, None]
    bound = (coded.weight * coded.scale)[:, None] * block.errors + (coded.shared * coded.scale)[:, None]
    gap = np.abs(queries.astype(np.float64) @ rows.T.astype(np.float64) - own @ rounded.T)
    assert (gap <= bound).all()
    along = (rows - rounded)[:1] / block.errors[0]  # the query that incurs a row's full rounding error
    assert np.abs(along @ (rows - rounded)[0]) > 0.99 * block.errors[0]


def coded(index: FaissIndex) -> int:
    """Return how many rows have codes."""
    return index._scan._coded if isinstance(index._scan, ByteScan) else 0


@compiled
def test_codes_keep_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "CODED_FROM", 100)
    rows, queries = cluster(4000, 24, 1.0), cluster(30, 24, 1.0, seed=9)
    index, plain = FaissIndex(24), FaissIndex(24)
    plain._scan = plain._flat_scan
    for start, stop in ((0, 1500), (1500, 1501), (1501, 4000)):
        for i in (index, plain):
            i.add(
                [f"d{n}" for n in range(start, stop)],
                rows[start:stop],
                [{"odd": n % 2} for n in range(start, stop)],
            )
            i.remove([f"d{start}"])
        for where in (None, Filter((("odd", ("1",)),))):
            for batch in (1, 30, 300):  # codes are made after many queries
                asked = np.resize(queries, (batch, 24))
                for a, b in zip(
                    index.search_rows(asked, 9, where), plain.search_rows(asked, 9, where), strict=True
                ):
                    np.testing.assert_array_equal(a, b)
        assert coded(index) == stop


@compiled
def test_codes_are_made_when_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "CODED_FROM", 1000)
    index = FaissIndex(8)
    index.add([f"d{n}" for n in range(2000)], cluster(2000, 8, 1.0))
    query = cluster(1, 8, 1.0, seed=1)
    for _ in range(vectors.CODED_AFTER - 1):
        index.search(query, 3)
    index.search(np.repeat(query, 500, axis=0), 100)  # k is too large a share
    assert coded(index) == 0
    index.search(query, 3)
    assert coded(index) == 2000
    small = FaissIndex(8)
    small.add(["a"], query)
    small.search(np.repeat(query, 500, axis=0), 1)
    assert coded(small) == 0


@compiled
def test_where_most_rows_are_alike_faiss_scans_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "CODED_FROM", 1000)
    alike, mixed, queries = (
        cluster(3000, 8, 1e-4, centres=1),
        cluster(3000, 8, 1.0),
        cluster(300, 8, 1.0, seed=1),
    )
    for rows, pays in ((alike, False), (mixed, True)):
        index = FaissIndex(8)
        index.add([f"d{n}" for n in range(len(rows))], rows)
        first = index.search_rows(queries, 3)
        assert isinstance(index._scan, ByteScan)
        again = index.search_rows(queries, 3)
        assert isinstance(index._scan, ByteScan) == pays
        np.testing.assert_array_equal(first[0], again[0])
        np.testing.assert_array_max_ulp(first[1], again[1], maxulp=1)


def test_scores_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, queries = cluster(300, 33, 1.0), cluster(5, 33, 1.0, seed=1)
    named = np.random.default_rng(0).integers(-1, 300, (5, 70))
    mine = scores(rows, queries, named)
    monkeypatch.setattr(kernels, "load", lambda *_: None)
    monkeypatch.setattr(certified, "BUFFER_BYTES", 8 * 33 * 70 * 2)
    np.testing.assert_array_max_ulp(mine[named >= 0], scores(rows, queries, named)[named >= 0], maxulp=1)
    assert np.isneginf(scores(rows, queries, named)[named < 0]).all()
    assert np.isneginf(mine[named < 0]).all()
    zeros = scores(np.zeros((1, 33), np.float32), -queries, np.zeros((5, 1), np.int64))
    assert not np.signbit(zeros).any()


def test_without_the_library_faiss_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "load", lambda *_: None)
    rows, queries = cluster(20_000, 16, 1.0), cluster(200, 16, 1.0, seed=1)
    index = FaissIndex(16)
    index.add([f"d{n}" for n in range(len(rows))], rows)
    got, _ = index.search_rows(queries, 5)
    assert index._scan is index._flat_scan
    want, _ = oracle(normalised(rows), normalised(queries), 5)
    assert (got == want).mean() > 0.999


def test_status_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(kernels.SWITCH, "0")
        assert "LINKER_NATIVE=0" in kernels.status("scan")
        assert "numpy" in kernels.status("postings")
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
        assert "not built" in kernels.status("scan")
        broken = tmp_path / f"_scan{EXTENSION_SUFFIXES[0]}"
        broken.write_text("no library")
        assert "cannot be loaded" in kernels.status("scan")
    assert kernels.status("scan")


@compiled
def test_status_names_a_processor_without_the_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def __init__(self, version: int) -> None:
            self.version = lambda: version

        def supported(self) -> int:
            return 0

    for version, said in (
        (kernels.KERNELS["scan"].version, "lacks AVX-512 VNNI"),
        (1, "another version: install again"),
    ):
        monkeypatch.setattr(ctypes, "CDLL", lambda _, v=version: Library(v))
        assert kernels._load("scan")[0] is None
        assert said in kernels.status("scan")


def build(tmp_path: Path, compiler: str) -> subprocess.CompletedProcess[str]:
    """Build the extension from a copy of its sources with another compiler."""
    pytest.importorskip("setuptools")
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "indexes" / "kernels").mkdir(parents=True)
    for source in (ROOT / "indexes" / "kernels").glob("*.c"):
        shutil.copy(source, tmp_path / "indexes" / "kernels")
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    environment = {**os.environ, "CC": compiler}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


def test_a_failed_build_breaks_nothing(tmp_path: Path) -> None:
    done = build(tmp_path, "false")
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "indexes").rglob("_*"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_build(tmp_path: Path) -> None:
    done = build(tmp_path, "cc")
    assert done.returncode == 0, done.stderr
    built = sorted(path.name.partition(".")[0] for path in (tmp_path / "indexes").rglob("_*"))
    assert built == sorted(f"_{name}" for name in kernels.KERNELS)


def test_the_threshold_is_put_back_and_shared() -> None:
    faiss, threshold = load_faiss(), flat.BlasThreshold()
    before = faiss.cvar.distance_compute_blas_threshold
    values: list[tuple[int, int]] = []

    def hold(value: int) -> None:
        for _ in range(20):
            with threshold.at(value):
                values.append((value, faiss.cvar.distance_compute_blas_threshold))
                time.sleep(0.0005)
                values.append((value, faiss.cvar.distance_compute_blas_threshold))

    threads = [threading.Thread(target=hold, args=(value,)) for value in (1, 1, 77, 77)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(value == current for value, current in values)
    assert len(values) == 160
    assert faiss.cvar.distance_compute_blas_threshold == before
    with pytest.raises(KeyError), threshold.at(5):
        raise KeyError
    assert faiss.cvar.distance_compute_blas_threshold == before


@compiled
@pytest.mark.parametrize("large", [0, 1 << 28])
def test_pages_of_a_large_file_are_given_back(monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    """The pages are released after the vectors were coded, and whenever many rows have been scored."""
    monkeypatch.setattr(certified, "LARGE", large)
    calls: list[int] = []
    scan = certified.ByteScan(release=lambda: calls.append(1))
    rows = normalised(np.random.default_rng(0).standard_normal((500, 16), dtype=np.float32))
    found = [scan.search(rows, rows[n : n + 1], 5, None)[0].tolist() for n in range(40)]
    assert found == scan.search(rows, rows[:40], 5, None)[0][:, None].tolist()
    assert (len(calls) > 2) == (large == 0)
    assert len(calls) >= 1


def test_the_bound_leaves_room_for_rounding_where_the_codes_hold_a_query_exactly() -> None:
    exact = np.array([[1, 0, 0, 0], [0.5, -0.5, 0.5, 0.5]], np.float32)
    queries = _Queries.code(exact, longest=3.0)
    room = queries.shared * queries.scale
    assert (
        room >= 16 * 2.0**-24 * 2 * 3.0 * 0.999
    ).all()  # sixteen roundings of |q| + |q̂|, times the longest row
