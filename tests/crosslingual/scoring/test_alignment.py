"""Monotone alignment: against a recursion over all alignments, worked by hand, and invariants for any costs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.crosslingual.aligned.aligning import agreement, gale_church
from linker.crosslingual.scoring.alignment import MOVES, Bead, Costs, align, least_costs


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
