"""Which segments are merged: few remain, and background merges leave alone those that a commit would merge."""

import itertools
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from indexes import carrying
from indexes.carrying import MergeLimits, due, left_alone

LIMITS = MergeLimits(small=64, built=512, most=1 << 40)
BATCHES = st.lists(st.integers(1, 12), max_size=400)


def committed(sizes: list[int], new: int, *, building: bool = False) -> list[int]:
    count = left_alone(sizes, new, LIMITS, building=building)
    return [*sizes[:count], sum(sizes[count:]) + new]


def merged(sizes: list[int], limits: MergeLimits = LIMITS) -> list[int]:
    run = due(sizes, limits)
    return [*sizes[: run.start], sum(sizes[run]), *sizes[run.stop :]] if run.stop else sizes


@given(BATCHES)
def test_segments_of_small_commits_stay_few(batches: list[int]) -> None:
    sizes: list[int] = [100_000]
    for new in batches:
        sizes = committed(sizes, new)
        assert len(sizes) <= carrying.CROWDED
        sizes = merged(sizes)
    assert sum(sizes) == 100_000 + sum(batches)


@given(BATCHES, st.integers(1, 20))
def test_commits_during_a_merge_take_in_nothing_of_it(batches: list[int], during: int) -> None:
    sizes: list[int] = []
    with mock.patch.object(carrying, "CROWDED", 1000):
        for new in batches:
            run = due(sizes, LIMITS)
            later = sizes
            for _ in range(during if run.stop else 1):
                later = committed(later, new)
                assert later[: run.stop] == sizes[: run.stop]
            sizes = merged(later) if run.stop else later


@given(BATCHES)
def test_a_build_carries_as_a_binary_counter(batches: list[int]) -> None:
    sizes: list[int] = []
    for new in batches:
        sizes = committed(sizes, new, building=True)
        assert all(earlier > later or earlier > 256 for earlier, later in itertools.pairwise(sizes))


def test_a_crowd_lets_a_commit_merge_larger_segments() -> None:
    sizes = [60] * (carrying.CROWDED - 1)
    assert left_alone(sizes, 8, LIMITS) == len(sizes)
    assert left_alone([60, *sizes], 8, LIMITS) == 4


def test_no_commit_merges_for_long_however_large_the_segments_of_a_crowd() -> None:
    for limits in (carrying.ROWS, carrying.POSTINGS, carrying.TOKENS):
        crowd = [limits.small] * 30
        count = left_alone(crowd, limits.small // carrying.FACTOR, limits)
        assert sum(crowd[count:]) == (carrying.FACTOR - 1) * limits.small
        assert left_alone([carrying.FACTOR * limits.small] * 30, limits.small, limits) == 30


def test_a_merge_takes_the_last_settled_segments() -> None:
    settled = [9000, 2000, 70, 60, 60, 60]
    assert due([*settled, 20, 3], LIMITS) == slice(0, 0)
    assert due([*settled, 60, 20, 3], LIMITS) == slice(2, 7)
    assert due([10_000, 5000, 1200, 300, 200, 150, 60], LIMITS) == slice(0, 7)
    assert due([10_000, 5000, 1200, 300, 250, 150, 60], MergeLimits(64, 512, 500)) == slice(4, 7)
    assert due([10_000, 5000, 1200, 300, 250, 150, 60], MergeLimits(64, 512, 100)) == slice(0, 0)
