"""The FAISS scan: the loss from rounding to float16 on a GPU is bounded, and the bound is needed."""

from __future__ import annotations

import numpy as np
import pytest

from indexes.arrays import normalised
from indexes.interface import Matrix, RowArray, ScoreArray
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.flat import FlatScan, _half_rounding, with_reserve


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


def test_a_best_row_that_float16_puts_behind_all_that_are_fetched_is_found(
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
    monkeypatch.setattr(scan, "_on_gpu", lambda fetch: half)
    assert len(rows) - 1 not in half.search(query, fetched)[1]
    assert scan.search(rows, query, 1, None)[0].tolist() == [[len(rows) - 1]]
