import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.fusion import Fusion, Ranking
from linker.errors import InputError
from linker.tuning import MEASURES, Tuning, find_relevant, fusions, tune


def ranking(lists: Sequence[Sequence[int]]) -> Ranking:
    """Rows with the scores 1, 1/2, 1/3, … by rank."""
    width = max(map(len, lists))
    rows = np.full((len(lists), width), -1, dtype=np.int64)
    scores = np.full((len(lists), width), -np.inf, dtype=np.float32)
    for q, answer in enumerate(lists):
        rows[q, : len(answer)] = answer
        scores[q, : len(answer)] = [1 / rank for rank in range(1, len(answer) + 1)]
    return rows, scores


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
    rows, _ = ranking([answer for answer, _ in queries])
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


QUERIES = 40
NOISE = [[100 + 10 * q + i for i in range(5)] for q in range(QUERIES)]  # rows that nobody wants
WANTED = [[q] for q in range(QUERIES)]


def at_rank(q: int, rank: int, noise: int = 0) -> list[int]:
    """Return an answer of five with the wanted row at `rank` (0: absent)."""
    answer = [row + 1000 * noise for row in NOISE[q]]
    if rank:
        answer[rank - 1] = q
    return answer


def means(result: Tuning, mode: str) -> list[float]:
    return [c.means[result.measure] for c in result.candidates if c.mode == mode]


def test_a_weak_dense_side_is_left_out() -> None:
    bm25 = ranking([at_rank(q, 1 if q % 4 else 2) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 0, noise=1) for q in range(QUERIES)])
    result = tune(bm25, dense, WANTED)
    assert (result.chosen.mode, result.chosen.fusion) == ("bm25", None)
    assert means(result, "bm25") == [(30 * 1 + 10 / 2) / 40]
    assert means(result, "dense") == [0]
    assert result.queries == QUERIES and len(result.candidates) == 2 + len(fusions())


def test_a_weak_bm25_side_is_left_out() -> None:
    bm25 = ranking([at_rank(q, 0) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 1, noise=1) for q in range(QUERIES)])
    assert tune(bm25, dense, WANTED).chosen.mode == "dense"


def test_sides_that_complete_each_other_become_a_hybrid() -> None:
    # Both know every wanted row at rank 2, below noise that the other side does not share.
    bm25 = ranking([at_rank(q, 2) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 2, noise=1) for q in range(QUERIES)])
    result = tune(bm25, dense, WANTED)
    # 1/62 + 1/62 > 1/61: the plainest hybrid already has it first, and equals go to the plainest.
    assert (result.chosen.mode, result.chosen.fusion) == ("hybrid", Fusion("rrf", (0.5, 0.5), 60))
    assert result.chosen.means == {"mrr": 1, "success@1": 1, "success@5": 1, "map": 1}
    assert means(result, "bm25") == means(result, "dense") == [1 / 2]
    assert "clearly ahead" in result.reason


def test_the_better_weight_is_found() -> None:
    # Even queries: dense has the wanted row first, BM25 only noise; at equal weights both firsts have 1/61 and the
    # lower row, the noise, wins. Odd queries: dense has it second, and BM25's first place lifts it.
    bm25, dense, wanted = [], [], [10_000 + q for q in range(QUERIES)]
    for q, row in enumerate(wanted):
        own, other = at_rank(q, 0), at_rank(q, 0, noise=1)
        bm25.append([row, *own[1:]] if q % 2 else own)
        dense.append([other[0], row] if q % 2 else [row, *other[1:]])
    result = tune(ranking(bm25), ranking(dense), [[row] for row in wanted])
    assert (result.chosen.mode, result.chosen.fusion) == ("hybrid", Fusion("rrf", (0.4, 0.6), 60))
    assert result.chosen.means["mrr"] == 1


def test_equal_sides_go_to_the_simpler() -> None:
    side = ranking([at_rank(q, 1 + q % 3) for q in range(QUERIES)])
    result = tune(side, side, WANTED)
    assert (result.chosen.mode, result.chosen.fusion) == ("bm25", None)
    assert "no hybrid is ahead" in result.reason


def test_a_lead_within_chance_is_not_enough() -> None:
    # One query of 40 gains: lead 1/40 · 1/2, standard error the same, so one, not two.
    bm25 = ranking([at_rank(q, 2 if q == 0 else 1) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 2 if q == 0 else 1, noise=1) for q in range(QUERIES)])
    result = tune(bm25, dense, WANTED)
    assert max(means(result, "hybrid")) == 1 > means(result, "bm25")[0] == 1 - 1 / 80
    gains = [0.5] + [0.0] * 39
    error = math.sqrt(sum((g - 0.5 / 40) ** 2 for g in gains) / 39) / math.sqrt(40)
    assert result.chosen.mode == "bm25"
    assert f"{0.5 / 40:.4f}, standard error {error:.4f}" in result.reason


def test_one_query_never_proves_a_hybrid() -> None:
    result = tune(ranking([at_rank(0, 2)]), ranking([at_rank(0, 2, noise=1)]), WANTED[:1])
    assert max(means(result, "hybrid")) == 1
    assert result.chosen.mode == "bm25"


def test_the_measure_decides() -> None:
    # BM25: half first, half missing. Dense: always second.
    bm25 = ranking([at_rank(q, q % 2) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 2) for q in range(QUERIES)])
    by = {m: tune(bm25, dense, WANTED, m) for m in ("success@1", "success@5")}
    assert means(by["success@1"], "bm25") == [0.5] and means(by["success@1"], "dense") == [0]
    assert means(by["success@5"], "bm25") == [0.5] and means(by["success@5"], "dense") == [1]
    assert by["success@5"].chosen.mode == "dense"


def test_queries_without_relevant_rows_or_answers_count_zero() -> None:
    bm25 = ranking([[5], [6], []])
    result = tune(bm25, None, [[5], [], [7]])
    assert result.chosen.means["mrr"] == 1 / 3


@pytest.mark.parametrize("mode", ["bm25", "dense"])
def test_an_index_with_one_side(mode: str) -> None:
    side = ranking([[5, 6]])
    result = tune(side if mode == "bm25" else None, side if mode == "dense" else None, [[6]])
    assert [c.mode for c in result.candidates] == [mode] == [result.chosen.mode]
    assert result.chosen.fusion is None and result.chosen.means["mrr"] == 1 / 2
    assert mode in result.reason


def test_what_cannot_be_tuned_is_refused() -> None:
    side = ranking([[1], [2]])
    with pytest.raises(InputError, match="unknown measure 'ndcg': choose one of mrr"):
        tune(side, side, [[1], [2]], "ndcg")
    with pytest.raises(InputError, match="neither"):
        tune(None, None, [[1], [2]])
    with pytest.raises(InputError, match="no query has a relevant document"):
        tune(side, side, [[], []])
    with pytest.raises(InputError, match="3 judged queries but 2 BM25 answers"):
        tune(side, side, [[1], [2], [3]])
