"""Margin and one-to-one: the worked numbers, the Hungarian oracle, and the diagonal pitfall."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from linker.crosslingual.aligned.aligning import agreement, gale_church
from linker.crosslingual.scoring.alignment import MOVES, Bead, Costs, align, least_costs, posterior
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


def costs_of(n: int, m: int, seed: int, skip: float = 0.4) -> Costs:
    rng = np.random.default_rng(seed)
    moves = {(a, b): a * b * rng.random((n - a + 1, m - b + 1)) for a, b in MOVES if a <= n and b <= m}
    return Costs(moves, skip * (0.5 + rng.random(n)), skip * (0.5 + rng.random(m)))


def slow(costs: Costs) -> float:
    """The minimum cost over all alignments, recursively from the last passages."""

    @cache
    def least(i: int, j: int) -> float:
        if i == j == 0:
            return 0.0
        options = [
            least(i - a, j - b) + float(costs.moves[a, b][i - a, j - b])
            for a, b in costs.moves
            if a <= i and b <= j
        ]
        if i:
            options.append(least(i - 1, j) + float(costs.source_skips[i - 1]))
        if j:
            options.append(least(i, j - 1) + float(costs.target_skips[j - 1]))
        return min(options)

    return least(len(costs.source_skips), len(costs.target_skips))


SIZES = st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 10_000))


@given(SIZES)
@settings(max_examples=60, deadline=None)
def test_the_table_ends_in_the_least_cost_of_all_alignments(sizes: tuple[int, int, int]) -> None:
    costs = costs_of(*sizes)
    assert least_costs(costs)[-1, -1] == pytest.approx(slow(costs), abs=1e-9)
    assert sum(bead.cost for bead in align(costs)) == pytest.approx(slow(costs), abs=1e-9)


def alignments(costs: Costs) -> list[tuple[set[tuple[int, int, int, int]], float]]:
    """Return all alignments, as sets of linking beads (begin and size on either side), with their costs."""
    n, m = len(costs.source_skips), len(costs.target_skips)

    def after(i: int, j: int) -> list[tuple[set[tuple[int, int, int, int]], float]]:
        found = [(set[tuple[int, int, int, int]](), 0.0)] if (i, j) == (n, m) else []
        for (a, b), values in costs.moves.items():
            if i + a <= n and j + b <= m:
                found += [
                    (beads | {(i, j, a, b)}, c + float(values[i, j])) for beads, c in after(i + a, j + b)
                ]
        if i < n:
            found += [(beads, c + float(costs.source_skips[i])) for beads, c in after(i + 1, j)]
        if j < m:
            found += [(beads, c + float(costs.target_skips[j])) for beads, c in after(i, j + 1)]
        return found

    return after(0, 0)


@given(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 10_000)), st.sampled_from([0.05, 0.3]))
@settings(max_examples=40, deadline=None)
def test_a_bead_is_as_probable_as_the_alignments_that_contain_it(
    sizes: tuple[int, int, int], temperature: float
) -> None:
    costs = costs_of(*sizes)
    beads = [bead for bead in align(costs) if bead.source and bead.target]
    weights = [(found, np.exp(-cost / temperature)) for found, cost in alignments(costs)]
    total = sum(weight for _, weight in weights)
    expected = [
        sum(w for found, w in weights if (b.source[0], b.target[0], len(b.source), len(b.target)) in found)
        / total
        for b in beads
    ]
    assert posterior(costs, beads, temperature).tolist() == pytest.approx(expected)


@given(SIZES)
@settings(max_examples=60, deadline=None)
def test_each_passage_is_in_one_bead_and_none_cross(sizes: tuple[int, int, int]) -> None:
    n, m, _ = sizes
    beads = align(costs_of(*sizes))
    assert [i for bead in beads for i in bead.source] == list(range(n))
    assert [j for bead in beads for j in bead.target] == list(range(m))
    shapes = {(len(bead.source), len(bead.target)) for bead in beads}
    assert shapes <= {*MOVES, (1, 0), (0, 1)}


@given(SIZES)
@settings(max_examples=60, deadline=None)
def test_swapping_the_pages_swaps_the_beads(sizes: tuple[int, int, int]) -> None:
    costs = costs_of(*sizes)
    turned = {(b, a): values.T for (a, b), values in costs.moves.items()}
    other = align(Costs(turned, costs.target_skips, costs.source_skips))
    linked = [(bead.source, bead.target) for bead in align(costs) if bead.source and bead.target]
    assert linked == [(bead.target, bead.source) for bead in other if bead.source and bead.target]


def test_pages_side_by_side_have_the_same_costs_as_alone() -> None:
    parts = [costs_of(5, 6, seed) for seed in range(4)]
    together = Costs(
        {move: np.stack([part.moves[move] for part in parts]) for move in parts[0].moves},
        np.stack([part.source_skips for part in parts]),
        np.stack([part.target_skips for part in parts]),
    )
    assert np.allclose(least_costs(together), [least_costs(part) for part in parts])


def test_by_hand() -> None:
    """Two source passages, three target ones: the second source passage is split in two."""
    one = np.array([[0.1, 0.9, 0.9], [0.9, 0.5, 0.6]])
    split = np.array([[0.8, 1.2], [1.3, 0.3]])
    costs = Costs({(1, 1): one, (1, 2): split}, np.full(2, 0.4), np.full(3, 0.4))
    assert least_costs(costs)[-1, -1] == pytest.approx(0.4)
    assert align(costs) == [
        Bead(range(1), range(1), 0.1),
        Bead(range(1, 2), range(1, 3), 0.3),
    ]
    # Without the split, the second target passage is linked (0.5) and the third skipped (0.4): 1.0 in all.
    without = Costs({(1, 1): one}, costs.source_skips, costs.target_skips)
    assert least_costs(without)[-1, -1] == pytest.approx(1.0)


def test_of_equal_costs_a_bead_wins() -> None:
    costs = Costs({(1, 1): np.array([[0.8]])}, np.array([0.4]), np.array([0.4]))
    assert [(len(bead.source), len(bead.target)) for bead in align(costs)] == [(1, 1)]


def test_lengths_agree_by_hand() -> None:
    agreed = agreement(np.array([10.0, 20.0]), np.array([30.0, 12.0]), 1.0)
    assert agreed[2, 1][0, 0] == pytest.approx(1)  # 30 characters and 30
    # (10 − 30) / √(6.8 · 20) = −1.715, the two-tailed probability of which is 8.63 % under a normal distribution.
    assert agreed[1, 1][0, 0] == pytest.approx(0.0863, abs=1e-4)


def test_gale_and_church_merge_two_sentences_of_fitting_length() -> None:
    beads = align(gale_church(np.array([50.0, 40.0, 90.0]), np.array([50.0, 130.0]), 1.0))
    assert [(bead.source, bead.target) for bead in beads] == [
        (range(1), range(1)),
        (range(1, 3), range(1, 2)),
    ]
