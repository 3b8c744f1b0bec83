"""The measures of tuning, against their definitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.engine.tuning import MEASURES, find_relevant


def padded(lists: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    """Rows [Q, k], filled with −1."""
    rows = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int64)
    for q, answer in enumerate(lists):
        rows[q, : len(answer)] = answer
    return rows


def oracle(answer: Sequence[int], relevant: Sequence[int]) -> dict[str, float]:
    """Every measure of one query, straight from its definition."""
    ranks = [rank for rank, row in enumerate(answer, start=1) if row in set(relevant) - {-1}]
    return {
        "mrr": 1 / ranks[0] if ranks else 0.0,
        "success@1": float(any(r <= 1 for r in ranks)),
        "success@5": float(any(r <= 5 for r in ranks)),
        "map": sum(n / r for n, r in enumerate(ranks, start=1)) / len(relevant) if relevant else 0.0,
    }


judged = st.tuples(
    st.lists(st.integers(0, 15), unique=True, max_size=10),
    st.lists(st.integers(0, 15), unique=True, max_size=4).flatmap(
        lambda rows: st.integers(0, 2).map(lambda missing: rows + [-1] * missing)
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(judged, min_size=1, max_size=6))
def test_measures_equal_their_definitions(queries: list[tuple[list[int], list[int]]]) -> None:
    rows = padded([answer for answer, _ in queries])
    relevant = [wanted for _, wanted in queries]
    found = find_relevant(rows, relevant)
    counts = np.array([len(r) for r in relevant], dtype=np.float64)
    for name, measure in MEASURES.items():
        expected = [oracle(answer, wanted)[name] for answer, wanted in queries]
        assert measure(found, counts).tolist() == pytest.approx(expected, abs=1e-12)


def test_worked_measures() -> None:
    found = find_relevant(np.array([[4, 7, 2, -1], [3, 1, 5, 9], [-1, -1, -1, -1]]), [[7, 2, 8], [9], [-1]])
    counts = np.array([3.0, 1.0, 1.0])
    assert MEASURES["mrr"](found, counts).tolist() == [1 / 2, 1 / 4, 0]
    assert MEASURES["map"](found, counts).tolist() == pytest.approx([(1 / 2 + 2 / 3) / 3, 1 / 4, 0])
    assert MEASURES["success@1"](found, counts).tolist() == [0, 0, 0]
    assert MEASURES["success@5"](found, counts).tolist() == [1, 1, 0]
