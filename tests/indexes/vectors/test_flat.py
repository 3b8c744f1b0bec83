"""The FAISS scan: the loss from rounding to float16 on a GPU is bounded, and the bound is needed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from indexes.arrays import normalised
from indexes.interface import Matrix, RowArray, ScoreArray
from indexes.rows import Rows
from indexes.vectors import flat
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.flat import FlatScan, _half_rounding, with_reserve
from tests.helpers import HashEncoder


def halved(vectors: Matrix) -> Matrix:
    return vectors.astype(np.float16).astype(np.float32)


def loss(a: Matrix, b: Matrix) -> float:
    """Return the maximum change in a product of rows of `a` and `b` from rounding both to float16."""
    exact, rounded = (
        np.einsum("nd,nd->n", x, y, dtype=np.float64) for x, y in ((a, b), (halved(a), halved(b)))
    )
    return float(np.abs(exact - rounded).max())


@pytest.mark.parametrize("dim", [2, 16, 300, 1024])
@pytest.mark.parametrize("spread", [0, 1, 5])
def test_half_rounding_is_an_upper_bound(dim: int, spread: float) -> None:
    rng = np.random.default_rng(dim)
    scale = np.exp(-spread * rng.random((2, 500, dim)))  # some values fall below float16's normal ones
    a, b = (normalised((part * rng.standard_normal((500, dim))).astype(np.float32)) for part in scale)
    assert loss(a, b) <= _half_rounding(dim)


def test_half_rounding_is_nearly_reached() -> None:
    """All values but one are just below the midpoint of 1/8 and the next float16: all are rounded down."""
    vector = np.full(64, 2.0**-3 * (1 + 0.499 * 2.0**-10), dtype=np.float32)
    vector[-1] = np.sqrt(1 - (vector[:-1].astype(np.float64) ** 2).sum())
    assert 0.95 * _half_rounding(64) < loss(vector[None], vector[None]) <= _half_rounding(64)


class HalfScanner:
    """A stand-in for FAISS on a GPU: the best rows by float16 products."""

    def __init__(self, vectors: Matrix) -> None:
        self.vectors = halved(vectors)

    def search(self, queries: Matrix, k: int) -> tuple[ScoreArray, RowArray]:
        scores = halved(queries) @ self.vectors.T
        rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, rows, axis=1), rows


def test_a_best_row_that_float16_puts_behind_others_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    query = normalised(rng.standard_normal((1, 16)).astype(np.float32))
    near = normalised(query + 0.02 * rng.standard_normal((200_000, 16)).astype(np.float32))
    exact = (near.astype(np.float64) @ query[0].astype(np.float64)).astype(np.float32)
    rough = halved(near) @ halved(query)[0]
    best = int(np.argmax(exact - rough))  # the row that loses the most in float16
    second = int(np.argmax(np.where(exact < exact[best] - 2e-5, exact, -1)))
    fetched = 4 * with_reserve(1)
    middle = (rough[best] + exact[second]) / 2
    fillers = np.flatnonzero((rough > middle) & (rough < exact[second] - 1e-5) & (exact < exact[second]))[
        :fetched
    ]
    assert len(fillers) == fetched
    rows = near[[*fillers, second, best]]
    flat = load_faiss().IndexFlatIP(16)
    flat.add(rows)
    scan, half = FlatScan(flat), HalfScanner(rows)
    monkeypatch.setattr(FlatScan, "on_gpu", lambda _: True)
    monkeypatch.setattr(scan, "_copied_to_gpus", lambda: half)
    assert len(rows) - 1 not in half.search(query, fetched)[1]
    assert scan.search(rows, query, 1, None)[0].tolist() == [[len(rows) - 1]]


def restored(kind: str, *blocks: Matrix) -> FaissIndex:
    rows = Rows()
    count = sum(len(block) for block in blocks)
    rows.restore([f"d{n}" for n in range(count)], np.array([2, 5], dtype=np.int64), [{}] * count)
    index = FaissIndex(16, kind, exact_below=100)
    index.restore(rows, *blocks)
    return index


def mapped(path: Path, count: int) -> Matrix:
    HashEncoder().encode([f"word{n} word{n % 7}" for n in range(count)]).tofile(path)
    return np.memmap(path, dtype="<f4", mode="r").reshape(-1, 16)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq"])
def test_a_mapped_block_answers_and_grows_like_a_copied_one(kind: str, tmp_path: Path) -> None:
    block = mapped(tmp_path / "v", 400)
    lent, copied = restored(kind, block), restored(kind, block[:150], block[150:])
    if kind == "flat":
        assert lent.vectors.ctypes.data == block.ctypes.data
    assert copied.vectors.ctypes.data != block.ctypes.data
    queries, new = HashEncoder().encode(["word3 word3", "word9"]), HashEncoder().encode(["word500"])
    for _ in range(2):
        (rows, scores), (other_rows, other_scores) = (i.search_rows(queries, 20) for i in (lent, copied))
        assert rows.tolist() == other_rows.tolist()
        assert scores.tolist() == other_scores.tolist()
        for index in (lent, copied):
            index.add([f"new{len(index)}"], new)
        assert len(lent) == len(copied)
    assert lent.search(new, 1)[0].ids == ("new398",)
    assert lent.vectors[:400].tolist() == block.tolist()


def flags_of(path: Path) -> list[str]:
    """Return the kernel's flags for this process's mapping of a file."""
    entries = re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
    (entry,) = (entry for entry in entries if str(path) in entry)
    return entry.partition("VmFlags:")[2].split()


@pytest.mark.parametrize("kind", ["hnsw", "pq", "ivfpq"])
def test_the_kernel_reads_ahead_for_scans_only(kind: str, tmp_path: Path) -> None:
    index = restored(kind, mapped(tmp_path / "v", 6000))
    queries = HashEncoder().encode(["word3 word3", "word9"])
    if kind == "hnsw":  # it owns a copy while it is built
        index.save_graph(tmp_path / "graph")
        index = restored(kind, mapped(tmp_path / "v", 6000))
        index.load_graph(tmp_path / "graph")
    for _ in range(2):
        index.search(queries, 5)
        assert "rr" in flags_of(tmp_path / "v")
        index.search_exactly(queries, 5)
        assert "rr" not in flags_of(tmp_path / "v")


def test_owning_is_done_once(tmp_path: Path) -> None:
    index = restored("flat", mapped(tmp_path / "v", 50))
    index._stored.own()
    address = index.vectors.ctypes.data
    index._stored.own()
    assert index.vectors.ctypes.data == address
    assert len(index.vectors) == 50


def test_pages_are_given_back_and_read_again(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((1 << 21, 16), dtype=np.float32)  # 128 MiB
    values.tofile(tmp_path / "v")
    block = np.memmap(tmp_path / "v", dtype="<f4", mode="r").reshape(-1, 16)
    index = restored("flat", block)
    assert index.vectors.sum() == values.sum()
    before = mapped_mib()
    index._stored.release()
    assert mapped_mib() < before - 100
    assert np.array_equal(index.vectors, values)
    index._stored.own()
    index._stored.release()  # its own memory is not backed by a file, and is left alone
    assert np.array_equal(index.vectors, values)


@pytest.mark.parametrize("allowed", ["everything", "a third"])
def test_a_lone_search_needs_no_faiss(allowed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = mapped(tmp_path / "v", 400)  # many equal vectors, so that ties at the last rank occur, too
    queries = HashEncoder().encode(["word3 word3", "word9", "word4"])
    mask = None if allowed == "everything" else np.arange(400) % 3 == 0
    scan, other = (FlatScan(restored("flat", block)._stored) for _ in range(2))
    expected = scan.search(block, queries, 20, mask)
    monkeypatch.setattr(flat, "faiss_loaded", lambda: False)
    monkeypatch.setattr(flat, "load_faiss", unwanted)
    rows, scores = other.search(block, queries, 20, mask)
    assert (rows.tolist(), scores.tolist()) == (expected[0].tolist(), expected[1].tolist())


def unwanted() -> None:
    raise AssertionError("FAISS was loaded")


def test_opening_and_searching_once_leaves_faiss_out(tmp_path: Path) -> None:
    mapped(tmp_path / "v", 400)
    code = f"""
import sys
import numpy as np
from indexes.rows import Rows
from indexes.vectors import flat
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.flat import FlatScan
block = np.memmap({str(tmp_path / "v")!r}, dtype="<f4", mode="r").reshape(-1, 16)
rows, index = Rows(), FaissIndex(16)
rows.restore([f"d{{n}}" for n in range(400)], np.array([2, 5]), [{{}}] * 400)
index.restore(rows, block)
assert index.search(np.array(block[7:8]), 3)[0].scores[0] > .999
sys.exit("faiss" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def mapped_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.findall(r"Rss(?:File|Shmem):\s+(\d+) kB", status)  # files on disk, and in memory
    assert found
    return sum(map(int, found)) / 1024
