"""The certified scan in torch: its logic always on the CPU; on CUDA, and FAISS there, if there is a GPU."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.arrays import normalised
from indexes.interface import Mask, Matrix
from indexes.vectors.certified import ExactScan
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.flat import FlatScan
from indexes.vectors.stored import StoredVectors
from linker.engine import torch_scan
from linker.engine.torch_scan import TorchScan

torch = pytest.importorskip("torch")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return name


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BLOCK", 512), ("QUERIES", 7), ("HELD", 300)):
        monkeypatch.setattr(torch_scan, name, value)


def cluster(rows: int, dim: int, spread: float, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    middle = np.random.default_rng(1).standard_normal((5, dim))
    return normalised(
        (middle[rng.integers(5, size=rows)] + spread * rng.standard_normal((rows, dim))).astype(np.float32)
    )


def assert_exact(scan: ExactScan, rows: Matrix, queries: Matrix, k: int, mask: Mask | None = None) -> None:
    """Compare with scoring every row in float64, rounded to float32, ties in row order."""
    got_rows, got = scan.search(rows, queries, k, mask)
    allowed = np.arange(len(rows)) if mask is None else np.flatnonzero(mask)
    exact = (queries.astype(np.float64) @ rows[allowed].astype(np.float64).T).astype(np.float32)
    best = np.array([np.lexsort((allowed, -row))[:k] for row in exact])
    np.testing.assert_array_max_ulp(got, np.take_along_axis(exact, best, axis=1), maxulp=1)
    assert (got_rows == allowed[best]).mean() > 0.99
    assert ((np.diff(got, axis=1) < 0) | (np.diff(got_rows, axis=1) > 0)).all()


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4, 0.0])
@pytest.mark.parametrize("k", [1, 5, 60])
def test_near_duplicates(device: str, spread: float, k: int) -> None:
    assert_exact(TorchScan(device), cluster(3000, 40, spread), cluster(20, 40, 0.1, seed=2), k)


UNIT = 2.0**-10  # spacing of float16 between 1 and 2


def coarse(rows: Matrix, queries: Matrix) -> Matrix:
    """Return products as computed by a GPU: of float16, summed in float32 and rounded to float16 once."""
    return (
        queries.astype(np.float16).astype(np.float32) @ rows.astype(np.float16).astype(np.float32).T
    ).astype(np.float16)


def test_the_bound_covers_the_rounding_of_the_product(device: str) -> None:
    """The rows' own rounding is small compared with the gap that rounding the product opens between them."""
    rows = np.array([[1 + 0.4 * UNIT, UNIT / 2], [1, UNIT / 2 + 0.51 * UNIT / 2**11]], dtype=np.float32)
    queries = np.ones((1, 2), dtype=np.float32)
    first, second = coarse(rows, queries)[0].astype(np.float64)
    errors = np.linalg.norm(rows - rows.astype(np.float16), axis=1) * np.sqrt(2)
    assert first + errors[0] < second - errors[1]  # without the product's rounding the better row is lost
    assert_exact(TorchScan(device), rows, queries, 1)


def test_the_bound_covers_the_rounding_of_the_rows(device: str) -> None:
    """Both rows are between two float16 values in nearly all dimensions; the better one is rounded down."""
    rows = np.ones((2, 49), dtype=np.float32)
    rows[0, :48] += np.float32(0.499 * UNIT)
    rows[1, :40] += np.float32(0.501 * UNIT)
    rows[:, 48] = 15.5 * UNIT, 9 * UNIT
    queries = np.ones((1, 49), dtype=np.float32)
    first, second = coarse(rows, queries)[0].astype(np.float64)
    product = 2.0**-11 * 1.05 * 7 * np.linalg.norm(rows, axis=1).max()
    assert first + product < second - product  # without the rows' errors the better row is lost
    assert_exact(TorchScan(device), rows, queries, 1)


def test_the_bound_covers_the_rounding_of_the_query(device: str) -> None:
    """The query is rounded down where the better row points, and up where the other one does."""
    rows = np.zeros((2, 41), dtype=np.float32)
    rows[0, :20] = rows[1, 20:40] = 1
    rows[:, 40] = 7.875 * UNIT, 7.75 * UNIT
    queries = np.ones((1, 41), dtype=np.float32)
    queries[0, :20] += np.float32(0.499 * UNIT)
    queries[0, 20:40] += np.float32(0.501 * UNIT)
    first, second = coarse(rows, queries)[0].astype(np.float64)
    product = 2.0**-11 * 1.03 * np.linalg.norm(queries) * np.linalg.norm(rows, axis=1).max()
    assert first + product < second - product  # without the query's error the better row is lost
    assert_exact(TorchScan(device), rows, queries, 1)


def test_masks_and_growth(device: str) -> None:
    scan, rows, queries = TorchScan(device), cluster(2000, 24, 1.0), cluster(9, 24, 1.0, seed=2)
    for size in (600, 601, 2000):
        mask = np.random.default_rng(size).random(size) < 0.3
        for allowed in (None, mask):
            assert_exact(scan, rows[:size], queries, 10, allowed)


def test_no_sum_is_in_float16_whatever_process_has_set(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matmul, search = torch.backends.cuda.matmul, TorchScan._search
    seen: list[bool] = []
    before = {name: getattr(matmul, name) for name in torch_scan.SUMMING}

    def watched(scan: TorchScan, *arguments: Any) -> Any:
        seen.extend(getattr(matmul, name) for name in torch_scan.SUMMING)
        return search(scan, *arguments)

    monkeypatch.setattr(TorchScan, "_search", watched)
    try:
        for name in torch_scan.SUMMING:
            setattr(matmul, name, True)
        assert_exact(TorchScan(device), cluster(100, 8, 1.0), cluster(2, 8, 1.0), 3)
        assert seen == [False, False]
        assert all(getattr(matmul, name) is True for name in torch_scan.SUMMING)
    finally:
        for name, value in before.items():
            setattr(matmul, name, value)


class Counted(torch.Tensor):  # type: ignore[name-defined,misc]  # torch may be absent
    """Queries that record how many vectors are gathered at once."""

    largest = 0

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(function, types, args, kwargs or {})
        if function is torch.Tensor.__getitem__ and result.shape[1:] == (16,):
            cls.largest = max(cls.largest, len(result))
        return result


def test_vectors_of_candidates_are_gathered_in_parts(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 768 dimensions, the vectors of all pairs that may be held would take 26 GB."""
    monkeypatch.setattr(torch_scan, "SCORED", 32)
    scan, rows, queries = TorchScan(device), cluster(400, 16, 0.0), cluster(7, 16, 1.0, seed=2)
    with torch.inference_mode():
        scan._cover(rows)
        counted = torch.from_numpy(queries).to(device).as_subclass(Counted)
        Counted.largest = 0
        got, _ = scan._search(counted, 5, None)
    assert (got == scan.search(rows, queries, 5, None)[0]).all()
    assert 0 < Counted.largest <= 32


def test_without_a_driver_there_is_no_scan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch_scan, "DRIVERS", (tmp_path / "none",))
    assert torch_scan.gpu_scan() is None
    (tmp_path / "driver").touch()
    monkeypatch.setattr(torch_scan, "DRIVERS", (tmp_path / "none", tmp_path / "driver"))
    make = torch_scan.gpu_scan()
    assert make is not None
    assert (make() is None) != torch.cuda.is_available()  # a driver without a device: the CPU takes over


def test_an_index_uses_the_scan_that_it_is_given(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    monkeypatch.setattr("indexes.vectors.faiss_index.CODED_FROM", 100)
    rows, queries = cluster(3000, 16, 1.0), cluster(200, 16, 1.0, seed=3)
    given, plain = FaissIndex(16, scan=lambda: TorchScan(device)), FaissIndex(16)
    for index in (given, plain):
        index.add([f"d{i}" for i in range(len(rows))], rows)
        index.remove(["d7"])
    for a, b in zip(given.search_rows(queries, 5), plain.search_rows(queries, 5), strict=True):
        np.testing.assert_array_equal(a, b)
    assert isinstance(given._scan, TorchScan)


def test_a_gpu_without_enough_memory_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(scan: TorchScan, vectors: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("indexes.vectors.faiss_index.CODED_FROM", 100)
    monkeypatch.setattr(TorchScan, "_cover", fail)
    rows, queries = cluster(3000, 16, 1.0), cluster(200, 16, 1.0, seed=3)
    index = FaissIndex(16, scan=lambda: TorchScan("cpu"))
    index.add([f"d{i}" for i in range(len(rows))], rows)
    for _ in range(2):
        found, _ = index.search_rows(queries, 5)
        np.testing.assert_array_equal(found, np.argsort(-(queries @ rows.T), axis=1, kind="stable")[:, :5])
    assert not isinstance(index._scan, TorchScan)


def test_faiss_on_a_gpu_serves_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stored, rows, busy = StoredVectors(16), cluster(3000, 16, 1.0), threading.Lock()
    stored.add(rows)

    class OnGpu:
        """A copy on GPUs that notices a second thread."""

        ntotal = len(rows)

        def search(self, *arguments: Any) -> Any:
            assert busy.acquire(blocking=False)
            time.sleep(0.02)
            busy.release()
            return stored.flat.search(*arguments)

    scan = FlatScan(stored)
    monkeypatch.setattr(scan, "_gpu", OnGpu())
    monkeypatch.setattr(FlatScan, "on_gpu", lambda _: True)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: assert_exact(scan, rows, cluster(2, 16, 1.0, seed=n), 5), range(8)))


@pytest.mark.gpu
def test_faiss_on_the_gpu_in_float16_is_exact() -> None:
    faiss = load_faiss()
    if not faiss.get_num_gpus():
        pytest.skip("faiss sees no GPU")
    for spread in (1.0, 1e-2, 1e-4):
        rows = cluster(20_000, 64, spread)
        stored = StoredVectors(64)
        stored.add(rows)
        scan = FlatScan(stored)
        assert_exact(scan, rows, cluster(50, 64, 0.1, seed=2), 10)
        assert scan._gpu is not None
