"""Vectors that stay where they are: the same answers as copied ones, and copied before anything is added."""

import re
from pathlib import Path

import numpy as np
import pytest

from indexes.interface import Matrix
from indexes.rows import Rows
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.mapped import own, release
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


def test_owning_is_done_once(tmp_path: Path) -> None:
    index = restored("flat", mapped(tmp_path / "v", 50))
    own(index._flat)
    address = index.vectors.ctypes.data
    own(index._flat)
    assert index.vectors.ctypes.data == address
    assert len(index.vectors) == 50


def test_pages_are_given_back_and_read_again(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((1 << 21, 16), dtype=np.float32)  # 128 MiB
    values.tofile(tmp_path / "v")
    block = np.memmap(tmp_path / "v", dtype="<f4", mode="r").reshape(-1, 16)
    index = restored("flat", block)
    assert index.vectors.sum() == values.sum()
    before = mapped_mib()
    release(index._flat)
    assert mapped_mib() < before - 100
    assert np.array_equal(index.vectors, values)
    own(index._flat)
    release(index._flat)  # memory of its own has nothing behind it, and is left alone
    assert np.array_equal(index.vectors, values)


def mapped_mib() -> float:
    found = re.search(r"RssFile:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found
    return int(found[1]) / 1024
