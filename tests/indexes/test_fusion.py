import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from indexes.fusion import BadFusionError, Fusion, Method, Ranking, _best, fuse, fuse_hits
from indexes.interface import Hits, IndexesError

METHODS: tuple[Method, ...] = ("rrf", "minmax", "max", "cosine", "zscore")
Answer = list[tuple[int, float]]  # one query's (row, score), best first


def ranking(answers: Sequence[Answer], width: int | None = None) -> Ranking:
    width = max((len(a) for a in answers), default=0) if width is None else width
    rows = np.full((len(answers), width), -1, dtype=np.int64)
    scores = np.full((len(answers), width), -np.inf, dtype=np.float32)
    for q, answer in enumerate(answers):
        for rank, (row, score) in enumerate(answer):
            rows[q, rank], scores[q, rank] = row, score
    return rows, scores


def oracle_gains(answer: Answer, fusion: Fusion, number: int) -> dict[int, float]:
    scores = [float(np.float32(s)) for _, s in answer]
    if not scores:
        return {}
    mean = sum(scores) / len(scores)
    deviation = math.sqrt(sum((s - mean) ** 2 for s in scores) / len(scores))
    low, high, largest = min(scores), max(scores), max(abs(s) for s in scores)
    gains = {}
    for rank, ((row, _), s) in enumerate(zip(answer, scores, strict=True), start=1):
        gains[row] = {
            "rrf": 1 / (fusion.k + rank),
            "minmax": (s - low) / (high - low) if high > low else 1.0,
            "max": s / largest if largest else 0.0,
            "cosine": s if number else (s / largest if largest else 0.0),
            "zscore": (s - mean) / deviation if high > low else 0.0,
        }[fusion.method]
    return gains


def oracle(answers: Sequence[Answer], fusion: Fusion) -> dict[int, float]:
    """Fused scores of one query, straight from the formulae."""
    weighted = enumerate(zip(answers, fusion.weights, strict=True))
    used = [(oracle_gains(a, fusion, number), w) for number, (a, w) in weighted if w > 0]
    rows = {row for gains, _ in used for row in gains}
    return {row: sum(w * gains.get(row, min([0.0, *gains.values()])) for gains, w in used) for row in rows}


def best(fused: dict[int, float], k: int) -> Answer:
    order = sorted(fused, key=lambda row: (-np.float32(fused[row]), row))
    return [(row, fused[row]) for row in order[:k]]


def answer_of(result: Ranking, query: int) -> Answer:
    return [(int(r), float(s)) for r, s in zip(result[0][query], result[1][query], strict=True) if r >= 0]


scores_of_a_side = st.one_of(
    st.floats(-2, 50, width=32).filter(lambda x: x == 0 or abs(x) > 1e-3),
    st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]),  # many equal ones
)


@st.composite
def side_answers(draw: st.DrawFn, queries: int) -> list[Answer]:
    answers = []
    for _ in range(queries):
        rows = draw(st.lists(st.integers(0, 12), unique=True, max_size=8))
        values = draw(st.lists(scores_of_a_side, min_size=len(rows), max_size=len(rows)))
        answers.append(list(zip(rows, sorted(values, reverse=True), strict=True)))
    return answers


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[Answer]], Fusion, int]:
    queries = draw(st.integers(1, 4))
    sides = draw(st.lists(side_answers(queries), min_size=1, max_size=3))
    weights = [draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, 0.3])) for _ in sides]
    if not any(weights):
        weights[-1] = 1.0
    fusion = Fusion(draw(st.sampled_from(METHODS)), tuple(weights), draw(st.sampled_from([0, 10, 60])))
    return sides, fusion, draw(st.integers(1, 30))


@settings(max_examples=300, deadline=None)
@given(cases())
def test_it_equals_the_formula(case: tuple[list[list[Answer]], Fusion, int]) -> None:
    sides, fusion, k = case
    rows, scores = fuse([ranking(s) for s in sides], fusion, k)
    assert rows.dtype == np.int64 and scores.dtype == np.float32
    assert rows.shape == scores.shape == (len(sides[0]), k)
    assert_array_equal(rows < 0, np.isneginf(scores))
    for q in range(len(rows)):
        expected = oracle([s[q] for s in sides], fusion)
        got = answer_of((rows, scores), q)
        assert len(got) == min(k, len(expected)) and len({r for r, _ in got}) == len(got)
        assert all(r < 0 for r in rows[q, len(got) :])
        # Sorted by the returned scores, then by row.
        assert got == sorted(got, key=lambda hit: (-hit[1], hit[0]))
        assert_allclose([s for _, s in got], [expected[r] for r, _ in got], rtol=1e-5, atol=1e-5)
        left_out = [expected[r] for r in expected.keys() - {r for r, _ in got}]
        assert not left_out or max(left_out) <= got[-1][1] + 1e-5


@settings(max_examples=200, deadline=None)
@given(cases())
def test_reciprocal_ranks_equal_the_formula_exactly(case: tuple[list[list[Answer]], Fusion, int]) -> None:
    sides, fusion, k = case
    fusion = Fusion("rrf", fusion.weights, fusion.k)
    result = fuse([ranking(s) for s in sides], fusion, k)
    for q in range(len(sides[0])):
        expected = best(oracle([s[q] for s in sides], fusion), k)
        assert answer_of(result, q) == [(r, float(np.float32(s))) for r, s in expected]


BM25: Answer = [(3, 8.0), (1, 6.0), (7, 4.0)]
DENSE: Answer = [(5, 0.9), (9, 0.8), (3, 0.5)]


def fused(method: Method, weights: tuple[float, float] = (1.0, 1.0)) -> dict[int, float]:
    return dict(answer_of(fuse([ranking([BM25]), ranking([DENSE])], Fusion(method, weights), 10), 0))


def test_worked_reciprocal_ranks() -> None:
    got = fused("rrf")
    assert list(got) == [3, 5, 1, 9, 7]
    expected = [1 / (60 + 1) + 1 / (60 + 3), 1 / (60 + 1), 1 / (60 + 2), 1 / (60 + 2), 1 / (60 + 3)]
    assert_allclose(list(got.values()), expected, rtol=1e-7)


def test_worked_minmax() -> None:
    got = fused("minmax", (0.25, 0.75))
    assert list(got) == [5, 9, 3, 1, 7]
    third = (0.8 - 0.5) / (0.9 - 0.5)
    expected = [0.75 * 1, 0.75 * third, 0.25 * 1 + 0.75 * 0, 0.25 * (6 - 4) / (8 - 4), 0.25 * 0]
    assert_allclose(list(got.values()), expected, rtol=1e-6)


def test_worked_max() -> None:
    got = fused("max")
    expected = {3: 8 / 8 + 0.5 / 0.9, 5: 0.9 / 0.9, 9: 0.8 / 0.9, 1: 6 / 8, 7: 4 / 8}
    assert list(got) == list(expected)
    assert_allclose(list(got.values()), list(expected.values()), rtol=1e-6)


def test_worked_cosine() -> None:
    got = fused("cosine", (1.0, 3.0))
    expected = {5: 3 * 0.9, 3: 8 / 8 + 3 * 0.5, 9: 3 * 0.8, 1: 6 / 8, 7: 4 / 8}
    assert list(got) == list(expected)
    assert_allclose(list(got.values()), list(expected.values()), rtol=1e-6)
    alone = Fusion("cosine", (0.0, 2.0))  # the dense scores are not scaled although they are alone
    assert_allclose(fuse([ranking([BM25]), ranking([DENSE])], alone, 3)[1], [[1.8, 1.6, 1.0]], rtol=1e-6)


def test_worked_zscore() -> None:
    got = fused("zscore")
    a, b = math.sqrt((4 + 0 + 4) / 3), float(np.std([0.9, 0.8, 0.5]))
    mean = (0.9 + 0.8 + 0.5) / 3
    absent_a, absent_b = (4 - 6) / a, (0.5 - mean) / b
    expected = {
        5: absent_a + (0.9 - mean) / b, 3: (8 - 6) / a + absent_b, 9: absent_a + (0.8 - mean) / b,
        1: 0 / a + absent_b, 7: absent_a + absent_b,
    }  # fmt: skip
    assert list(got) == sorted(expected, key=lambda r: -expected[r])
    assert_allclose(list(got.values()), sorted(expected.values(), reverse=True), rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_answered(method: Method) -> None:
    for width in (0, 3):
        rows, scores = fuse([ranking([[], []], width)] * 2, Fusion(method), 3)
        assert_array_equal(rows, np.full((2, 3), -1))
        assert np.isneginf(scores).all()
    assert fuse([ranking([]), ranking([])], Fusion(method), 3)[0].shape == (0, 3)


def test_equal_scores_come_by_ascending_row() -> None:
    sides = [ranking([[(9, 1.0), (2, 0.5)]]), ranking([[(4, 1.0), (1, 0.5)]])]
    assert fuse(sides, Fusion("rrf", (0.5, 0.5)), 4)[0].tolist() == [[4, 9, 1, 2]]
    assert fuse(sides, Fusion("rrf", (0.5, 0.5)), 1)[0].tolist() == [[4]]
    # Different in float64, equal in the returned float32.
    near = [ranking([[(6, 1.0), (2, 0.5)]]), ranking([[(2, 1.0), (6, 0.5)]])]
    rows, scores = fuse(near, Fusion("minmax", (0.5 + 1e-12, 0.5)), 2)
    assert rows.tolist() == [[2, 6]] and scores[0, 0] == scores[0, 1]


def test_minus_zero_is_zero() -> None:
    rows, scores = _best(np.array([[3, 5]]), np.array([[-0.0, 0.0]]), 2)
    assert rows.tolist() == [[3, 5]]
    assert not np.signbit(scores).any()


@pytest.mark.parametrize("k", [1, 2, 30, 299, 300])
def test_the_best_are_those_of_a_sort(k: int) -> None:
    totals = np.random.default_rng(k).standard_normal((4, 300)).astype(np.float32).astype(np.float64)
    rows, scores = _best(np.tile(np.arange(300), (4, 1)), totals, k)
    assert_array_equal(rows, np.argsort(-totals, axis=1)[:, :k])
    assert_array_equal(scores, -np.sort(-totals, axis=1)[:, :k])


def many(queries: int, seed: int = 0) -> list[Ranking]:
    """Enough queries for several blocks."""
    rng = np.random.default_rng(seed)
    rows = [np.argsort(rng.random((queries, 40)), axis=1)[:, :w] for w in (20, 15)]
    return [(r, -np.sort(-rng.random(r.shape).astype(np.float32), axis=1)) for r in rows]


@pytest.mark.parametrize("method", METHODS)
def test_queries_are_independent(method: Method) -> None:
    sides, fusion = many(700), Fusion(method, (0.3, 0.7))
    rows, scores = fuse(sides, fusion, 10)
    order = np.random.default_rng(1).permutation(700)
    shuffled = fuse([(r[order], s[order]) for r, s in sides], fusion, 10)
    assert_array_equal(shuffled[0], rows[order])
    assert_array_equal(shuffled[1], scores[order])
    alone = fuse([(r[5:6], s[5:6]) for r, s in sides], fusion, 10)
    assert_array_equal(alone[0][0], rows[5])


@settings(max_examples=200, deadline=None)
@given(cases())
def test_hits_fuse_as_rows_numbered_by_first_mention(case: tuple[list[list[Answer]], Fusion, int]) -> None:
    sides, fusion, k = case
    hits = [
        [Hits(tuple(f"d{r}" for r, _ in a), np.array([s for _, s in a], dtype=np.float32)) for a in s]
        for s in sides
    ]
    for q, got in enumerate(fuse_hits(hits, fusion, k)):
        names = list(dict.fromkeys(r for s in sides for r, _ in s[q]))
        numbered = [ranking([[(names.index(r), x) for r, x in s[q]]]) for s in sides]
        expected = answer_of(fuse(numbered, fusion, k), 0)
        assert got.ids == tuple(f"d{names[r]}" for r, _ in expected)
        assert got.scores.tolist() == [s for _, s in expected]


def test_the_default_keeps_a_clear_winner_of_bm25_against_a_flat_dense_side() -> None:
    """A weak encoder finds everything about equally near: its ranks say little, and its scores show it."""
    bm25 = [(0, 20.0), *((row, 8.0 - row / 10) for row in range(1, 30))]
    dense = [(row, 0.90 - row / 1000) for row in range(1, 30)]
    sides = [ranking([bm25]), ranking([dense])]
    assert fuse(sides, Fusion(), 1)[0].tolist() == [[0]]
    assert fuse(sides, Fusion("rrf", (0.5, 0.5)), 1)[0].tolist() == [[1]]


def test_settings_survive_json() -> None:
    for fusion in (Fusion(), Fusion("zscore", (0.2, 0.3, 0.5), 10)):
        assert Fusion.from_json(fusion.to_json()) == fusion
    assert Fusion().to_json() == {"method": "zscore", "weights": [0.6, 0.4], "k": 60}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "mean"}, "'mean'.*rrf, minmax"), ({"weights": [0.5, -0.1]}, "none negative"),
        ({"weights": [0.0, 0.0]}, "at least one"), ({"weights": []}, "at least one"),
        ({"weights": [math.nan, 1.0]}, "finite"), ({"weights": ["1", 1.0]}, "numbers"),
        ({"weights": 0.5}, "must be a list"), ({"k": -1}, "integer"), ({"k": 1.5}, "integer"),
        ({"alpha": 1}, "nothing else"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadFusionError, match=message) as caught:
        Fusion.from_json(Fusion().to_json() | change)
    assert isinstance(caught.value, IndexesError) and isinstance(caught.value, ValueError)


def test_sides_that_do_not_fit_are_refused() -> None:
    one, two = ranking([BM25]), ranking([DENSE, DENSE])
    with pytest.raises(BadFusionError, match="expected 2 fusion weights, one per ranking, got 3"):
        fuse([one, one], Fusion(weights=(1, 1, 1)), 3)
    with pytest.raises(BadFusionError, match="rankings do not match"):
        fuse([one, two], Fusion(), 3)
    with pytest.raises(BadFusionError, match="ask for 1 or more"):
        fuse([one, one], Fusion(), 0)
    with pytest.raises(BadFusionError, match="too large"):
        fuse([ranking([[(2**61, 1.0)]])], Fusion(weights=(1,)), 1)
    with pytest.raises(BadFusionError, match="different numbers of queries"):
        fuse_hits([[], [Hits((), np.empty(0, dtype=np.float32))]], Fusion(), 1)
