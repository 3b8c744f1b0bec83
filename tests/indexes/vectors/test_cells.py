"""Cells of 4-bit codes: files of earlier versions are read, and damaged ones refused before FAISS reads them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from indexes.interface import DamagedError, Matrix
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.pq import IvfPq

DIM, ROWS = 7, 2000
Change = Callable[[bytearray], None]


def vectors(rows: int = ROWS) -> Matrix:
    made = np.random.default_rng(3).standard_normal((rows, DIM)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def flat_of(rows: Matrix) -> object:
    flat = load_faiss().IndexFlatIP(DIM)
    flat.add(rows)
    return flat


def saved(path: Path) -> bytes:
    cells = IvfPq()
    cells.extend(flat_of(vectors()), vectors())
    cells.save(path)
    return path.read_bytes()


def finds_itself(cells: IvfPq, mask: object = None) -> float:
    rows = cells.generate(vectors(), 10, mask)  # type: ignore[arg-type] # a mask or None
    return float(np.mean((rows == np.arange(len(rows))[:, None]).any(axis=1)))


def test_a_file_of_an_earlier_version_is_read_searched_and_extended(tmp_path: Path) -> None:
    faiss = load_faiss()
    padded = np.pad(vectors(), ((0, 0), (0, 1)))
    old = faiss.IndexIVFPQ(faiss.IndexFlatIP(8), 8, 40, 2, 5, faiss.METRIC_INNER_PRODUCT)
    old.cp.min_points_per_centroid = old.pq.cp.min_points_per_centroid = 1
    old.train(padded)
    old.add(padded[:1500])
    faiss.write_index(old, str(tmp_path / "old"))
    assert (tmp_path / "old").read_bytes()[:4] == IvfPq.FOURCCS[1]
    cells = IvfPq()
    assert cells.load(tmp_path / "old", flat_of(vectors())) == 1500
    cells.extend(flat_of(vectors()), vectors())
    assert finds_itself(cells) > 0.9
    cells.save(tmp_path / "again")
    assert IvfPq().load(tmp_path / "again", flat_of(vectors())) == ROWS


def test_a_mask_leaves_the_allowed_rows(tmp_path: Path) -> None:
    saved(tmp_path / "x")
    cells = IvfPq()
    cells.load(tmp_path / "x", flat_of(vectors()))
    mask = np.arange(ROWS) % 7 == 0
    rows = cells.generate(vectors()[:50], 10, mask)
    assert mask[rows[rows >= 0]].all()
    assert finds_itself(cells) > 0.95


def put(place: int, value: int, kind: str = "<i8") -> Change:
    def change(data: bytearray) -> None:
        start = place if place >= 0 else data.index(b"ilbl") - place
        size = np.dtype(kind).itemsize
        data[start : start + size] = np.array([value], dtype=kind).tobytes()

    return change


def hold_a_row_twice(data: bytearray) -> None:
    first = data.index(b"ilbl") + 44
    data[first : first + 8] = data[first + 8 : first + 16]


def lose_a_code(data: bytearray) -> None:
    """Take the first byte of the first cell's codes, and say that there is one less."""
    start = data.index(b"ilbl") + 36
    numbers = int.from_bytes(data[start : start + 8], "little")
    place = start + 8 + 8 * numbers
    size = int.from_bytes(data[place : place + 8], "little")
    data[place : place + 9] = (size - 1).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lose_a_code, "codes are missing"),
        (hold_a_row_twice, "each row once"),
        (put(4, 99, "<i4"), "another index"),
        (put(37, 0), "no cells"),
        (put(37, ROWS + 1), "no cells"),
        (put(-4, 1), "do not match"),  # offsets after "ilbl"
        (put(-12, 8), "do not match"),
        (put(-20, 64), "do not match"),
        (put(-28, 1 << 40), "do not match"),
        (put(-36, 1 << 50), "shorter than the sizes"),
        (put(-36, 0), "shorter than the sizes|codes are missing|it holds"),
        (put(-44, -1), "rows outside"),
        (put(-44, ROWS), "rows outside"),
        (lambda data: data.extend(b"x"), "bytes follow"),
        (lambda data: data.__delitem__(slice(-1, None)), "shorter than the sizes"),
    ],
)
def test_a_damaged_file_is_refused(change: Change, why: str, tmp_path: Path) -> None:
    data = bytearray(saved(tmp_path / "x"))
    change(data)
    (tmp_path / "y").write_bytes(data)
    with pytest.raises(DamagedError, match=why):
        IvfPq().load(tmp_path / "y", flat_of(vectors()))
