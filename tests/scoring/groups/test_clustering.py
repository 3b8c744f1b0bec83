"""Correlation clustering against the optimum over all partitions; group numbers that persist, and their log."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.dtypes import Float64Array, Int64Array
from linker.scoring.groups.clustering import cluster
from linker.scoring.groups.following import Change, changes, continue_numbers

Problem = tuple[Int64Array, Float64Array, Float64Array]


def gain(labels: Sequence[int], problem: Problem, threshold: float) -> float:
    """Return the gain of a partition, pair by pair."""
    pairs, probabilities, weakest = problem
    known = dict(zip(map(tuple, pairs.tolist()), probabilities.tolist(), strict=True))
    total = 0.0
    for i, j in itertools.combinations(range(len(labels)), 2):
        if labels[i] == labels[j]:
            absent = threshold * weakest[i] * weakest[j]
            total += known.get((i, j), absent) - threshold
    return total


def partitions(count: int) -> Iterator[tuple[int, ...]]:
    """Yield every partition of this many documents, as restricted growth strings."""
    if not count:
        yield ()
        return
    for labels in partitions(count - 1):
        for label in range(max(labels, default=-1) + 2):
            yield (*labels, label)


def problem(rng: np.random.Generator, count: int, share: float = 0.7) -> Problem:
    every = np.array(list(itertools.combinations(range(count), 2)), np.int64).reshape(-1, 2)
    pairs = every[rng.random(len(every)) < share]
    story = rng.integers(0, 3, count)
    right = story[pairs[:, 0]] == story[pairs[:, 1]]
    probabilities = np.clip(np.where(right, 0.7, 0.3) + rng.normal(0, 0.25, len(pairs)), 0, 1)
    return pairs, probabilities, rng.random(count) * (rng.random(count) < 0.5)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    count = draw(st.integers(1, 12))
    return problem(np.random.default_rng(draw(st.integers(0, 1 << 32))), count, draw(st.floats(0, 1)))


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8])
def test_nearly_always_the_optimum_and_never_below_the_trivial_partitions(threshold: float) -> None:
    optimal = 0
    for seed in range(60):
        made = problem(np.random.default_rng(seed), 7)
        best = max(gain(labels, made, threshold) for labels in partitions(7))
        reached = gain(cluster(*made, threshold).tolist(), made, threshold)
        assert max(0.0, gain([0] * 7, made, threshold)) - 1e-9 <= reached <= best + 1e-9
        optimal += reached >= best - 1e-9
    assert optimal >= 54


@given(problems(), st.floats(0.05, 0.95))
def test_no_single_document_gains_by_moving(made: Problem, threshold: float) -> None:
    labels = cluster(*made, threshold).tolist()
    assert len(labels) == len(made[2]) and list(dict.fromkeys(labels)) == list(range(max(labels) + 1))
    before = gain(labels, made, threshold)
    assert before >= -1e-9
    for i, to in itertools.product(range(len(labels)), range(max(labels) + 2)):
        assert gain([*labels[:i], to, *labels[i + 1 :]], made, threshold) <= before + 1e-6


@given(problems(), problems())
def test_separate_corpora_are_grouped_as_if_alone(one: Problem, other: Problem) -> None:
    count = len(one[2])
    pairs = np.concatenate([one[0], other[0] + count])
    both = cluster(pairs, np.concatenate([one[1], other[1]]), np.concatenate([one[2], other[2]]))
    first, second = cluster(*one), cluster(*other)
    assert both.tolist() == [*first.tolist(), *(second + first.max() + 1).tolist()]


def test_short_lists_do_not_split_a_large_group_and_a_bridge_does_not_join_two() -> None:
    """60 documents of one story, each compared only with its next 5, all probable or all improbable."""
    pairs = np.array([(i, (i + d) % 60) for i in range(60) for d in range(1, 6)])
    pairs = np.sort(pairs, axis=1)
    probabilities = np.full(len(pairs), 0.9)
    assert cluster(pairs, probabilities, np.full(60, 0.99)).max() == 0
    assert cluster(pairs, probabilities, np.zeros(60)).max() > 3
    pairs = np.array(
        [*itertools.combinations(range(10), 2), *itertools.combinations(range(10, 20), 2), (0, 10)]
    )
    labels = cluster(pairs, np.full(len(pairs), 0.9), np.full(20, 0.7))
    assert labels.tolist() == [0] * 10 + [1] * 10


Groups = dict[str, int]
groupings = st.dictionaries(st.sampled_from([f"d{i}" for i in range(12)]), st.integers(1, 5))


def numbered(before: Groups, after: Groups) -> Groups:
    number = continue_numbers(before, after)
    return {id_: number[group] for id_, group in after.items()}


@given(groupings)
def test_nothing_changes_where_nothing_changed(groups: Groups) -> None:
    renamed = {id_: 10 - group for id_, group in groups.items()}
    assert numbered(groups, renamed) == groups
    assert not list(changes(groups, groups))


@given(groupings, groupings)
def test_numbers_are_those_of_one_group_each(before: Groups, after: Groups) -> None:
    number = continue_numbers(before, after)
    assert number.keys() == set(after.values()) and len(set(number.values())) == len(number)
    for group, kept in number.items():
        ids = {id_ for id_, other in after.items() if other == group}
        assert kept > max(before.values(), default=0) or any(before.get(id_) == kept for id_ in ids)


@given(groupings, groupings)
def test_the_log_says_where_every_document_of_a_group_came_from(before: Groups, after: Groups) -> None:
    now = numbered(before, after)
    log = list(changes(before, now))
    told = dict(before)
    for change in log:
        for id_ in change.ids:
            told[id_] = change.group
        if change.change == "left":
            for id_ in change.ids:
                del told[id_]
    alone = {id_ for id_ in now if id_ not in before and list(now.values()).count(now[id_]) == 1}
    assert told == {id_: group for id_, group in now.items() if id_ not in alone}


def test_a_group_grows_begins_merges_and_splits() -> None:
    before = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3, "f": 4, "g": 4, "h": 4}
    after = {"a": 7, "b": 7, "c": 7, "d": 7, "new": 7, "f": 8, "g": 8, "h": 9, "i": 9, "x": 5}
    assert continue_numbers(before, after) == {7: 1, 8: 4, 9: 5, 5: 6}
    assert list(changes(before, numbered(before, after))) == [
        Change("joined", 1, ("new",)),
        Change("merged", 1, ("c", "d"), 2),
        Change("began", 5, ("h", "i")),
        Change("split", 5, ("h",), 4),
        Change("left", 3, ("e",)),
    ]
