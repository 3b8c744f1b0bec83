"""Vectors that stay where they are: the same answers as copied ones, and copied before anything is added."""

from pathlib import Path

import numpy as np
import pytest

from indexes.mapped import own
from indexes.rows import Rows
from indexes.vectors import FaissIndex
from tests.helpers import HashEncoder


def restored(kind: str, *blocks: np.ndarray) -> FaissIndex:  # type: ignore[type-arg] # float32 matrices
    rows = Rows()
    count = sum(len(block) for block in blocks)
    rows.restore([f"d{n}" for n in range(count)], np.array([2, 5], dtype=np.int64), [{}] * count)
    index = FaissIndex(16, kind, exact_below=100)
    index.restore(rows, *blocks)
    return index


def mapped(path: Path, count: int) -> np.ndarray:  # type: ignore[type-arg] # float32
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
        for one, other in zip(lent.search_rows(queries, 20), copied.search_rows(queries, 20), strict=True):
            assert one.tolist() == other.tolist()
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
