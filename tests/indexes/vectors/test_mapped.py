"""Vectors used in place: the same results as copied vectors, and copied before anything is added."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from indexes.interface import Matrix
from indexes.rows import Rows
from indexes.vectors import flat
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.flat import FlatScan
from tests.helpers import HashEncoder


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
def test_a_lone_search_needs_no_faiss_and_answers_alike(
    allowed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
