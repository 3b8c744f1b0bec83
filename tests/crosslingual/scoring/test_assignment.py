"""Margin and one-to-one: the worked numbers, the Hungarian oracle, and the diagonal pitfall."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from linker.crosslingual.scoring.assignment import (
    descending,
    greedy,
    margin,
    maximum,
    pigeonhole,
    promote,
)
from linker.crosslingual.scoring.candidates import Candidates, nearest
from tests.crosslingual.tiny import Given

S = [[0.9, 0.8, 0.1], [0.85, 0.5, 0.2], [0.3, 0.4, 0.35]]
SOURCES, TARGETS = ["s0", "s1", "s2"], ["t0", "t1", "t2"]


def candidates(scores: list[list[float]]) -> Candidates:
    n, m = np.shape(scores)
    return nearest(Given(scores), [f"s{i}" for i in range(n)], [f"t{i}" for i in range(m)], k=2).candidates


def matrix(found: Candidates) -> np.ndarray:
    result = np.zeros((3, 3))
    rows, columns, scores = found.pairs()
    result[rows, columns] = scores
    return result


def test_worked_numbers() -> None:
    found = nearest(Given(S), SOURCES, TARGETS, k=2)
    assert found.forward == pytest.approx([0.85, 0.675, 0.375])
    assert found.backward == pytest.approx([0.875, 0.65, 0.275])
    ratios = margin(found, SOURCES, TARGETS)
    assert matrix(ratios) == pytest.approx(
        np.array([[1.0435, 1.0667, 0.1778], [1.0968, 0.7547, 0.4211], [0.48, 0.7805, 1.0769]]), abs=5e-5
    )
    assert found.candidates.targets[:, 0].tolist() == [0, 0, 1]
    assert ratios.targets[:, 0].tolist() == [1, 0, 2]
    assert greedy(found.candidates, SOURCES, TARGETS).tolist() == [0, 1, 2]
    assert greedy(ratios, SOURCES, TARGETS).tolist() == [1, 0, 2]
    assert linear_sum_assignment(-matrix(ratios))[1].tolist() == [1, 0, 2]


def test_max() -> None:
    forward, backward = candidates(S), candidates(np.transpose(S).tolist())
    # Forward bests 00 (.9), 10 (.85), 21 (.4); backward bests 00, 01 (.8), 22 (.35): 10 and 01 each share a page
    # with 00, which is taken first.
    assert maximum(forward, backward, SOURCES, TARGETS).tolist() == [0, -1, 1]
    scores = [[0.9, 0.2], [0.85, 0.5]]  # the second source's best is taken; the second target's is free
    forward, backward = candidates(scores), candidates(np.transpose(scores).tolist())
    assert maximum(forward, backward, SOURCES[:2], TARGETS[:2]).tolist() == [0, 1]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8))
def test_greedy_is_one_to_one_stable_and_at_least_half_of_the_optimum(seed: int, n: int) -> None:
    scores = np.random.default_rng(seed).random((n, n)).astype(np.float32)
    partner = greedy(candidates(scores.tolist()), [f"s{i}" for i in range(n)], [f"t{i}" for i in range(n)])
    assert sorted(partner.tolist()) == list(range(n))
    own = scores[np.arange(n), partner]
    holder = np.argsort(partner)
    for i in range(n):  # no source and target would both prefer each other
        assert not any(scores[i, j] > own[i] and scores[i, j] > own[holder[j]] for j in range(n))
    rows, columns = linear_sum_assignment(-scores)
    assert own.sum() >= scores[rows, columns].sum() / 2


def test_gold_on_the_diagonal_with_no_evidence_is_at_chance() -> None:
    n = 300
    names = [f"s{i}" for i in range(n)], [f"t{i}" for i in range(n)]
    empty = candidates(np.zeros((n, n)).tolist())
    assert (greedy(empty, *names) == -1).all()
    tied = greedy(nearest(Given(np.ones((n, n)).tolist()), *names, depth=n).candidates, *names)
    assert (tied == np.arange(n)).sum() <= 6  # expected: 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_ties_go_by_a_hash_not_by_the_order_of_pages_or_the_seventh_decimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain = rng.integers(1, 3, (7, 7)) / 2
    scores = plain + rng.uniform(0, 4e-7, (7, 7))
    sources, targets = [f"s{i}" for i in range(7)], [f"t{i}" for i in range(7)]

    def matched(scores: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> dict[str, str]:
        names = [sources[i] for i in rows], [targets[i] for i in columns]
        found = nearest(Given(scores[np.ix_(rows, columns)].tolist()), *names, depth=7).candidates
        return {names[0][i]: names[1][j] for i, j in enumerate(greedy(found, *names).tolist())}

    expected = matched(plain, np.arange(7), np.arange(7))
    assert matched(plain, rng.permutation(7), rng.permutation(7)) == expected
    assert matched(scores, np.arange(7), np.arange(7)) == expected


def test_a_hub_does_not_swallow_everything() -> None:
    n = 6
    scores = np.eye(n, n + 1) * 0.5 + 0.1
    scores[:, n] = 0.7  # a page near all others
    names = [f"s{i}" for i in range(n)], [f"t{i}" for i in range(n + 1)]
    found = nearest(Given(scores.tolist()), *names, k=4)
    assert (found.candidates.targets[:, 0] == n).all()
    assert margin(found, *names).targets[:, 0].tolist() == list(range(n))


def given_ranks() -> Candidates:
    return Candidates(
        np.array([[4, 2, 7, -1], [4, 2, -1, -1]]),
        np.array([[0.5, 0.5, 0.1, -np.inf], [0.3, 0.2, -np.inf, -np.inf]], np.float32),
    )


def test_promoting_keeps_the_order_of_the_others() -> None:
    moved = promote(given_ranks(), np.array([7, -1]))
    assert moved.targets.tolist() == [[7, 4, 2, -1], [4, 2, -1, -1]]
    assert pigeonhole(given_ranks(), np.array([7, 4])).targets.tolist() == [[7, 2, 4, -1], [4, 2, -1, -1]]
    assert pigeonhole(given_ranks(), np.array([-1, 2])).targets.tolist() == [[4, 7, 2, -1], [2, 4, -1, -1]]


def test_scores_agree_with_the_order_and_fall_strictly() -> None:
    final = descending(promote(given_ranks(), np.array([7, -1])))
    assert final.targets.tolist() == [[7, 4, 2, -1], [4, 2, -1, -1]]
    for row in final.scores:
        kept = row[np.isfinite(row)]
        assert (np.diff(kept) < 0).all()
        printed = [float(f"{score:.9g}") for score in kept.tolist()]
        assert len(set(np.array(printed, np.float32).tolist())) == len(kept)
    assert final.scores[1, :2].tolist() == pytest.approx([0.3, 0.2])
