"""The table of thresholds: counts by hand, and the invariants of any table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.scoring.pairs.thresholds import thresholds

SCORES = [1.0, 1.5, 1.5, 2.0, 3.0, 4.0]
MATCHES = [True, True, False, True, False, False]


def test_the_counts_are_those_of_the_pairs_at_or_below() -> None:
    table = thresholds(SCORES, MATCHES, [0.5, 1.0, 1.5, 2.5, 4.0])
    found = [(row.score, row.accepted, row.right) for row in table.rows]
    assert found == [(1.0, 1, 1), (1.5, 3, 2), (2.5, 4, 3), (4.0, 6, 3)]
    assert [row.recall for row in table.rows] == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert table.best.score == 2.5
    assert table.best.f1 == pytest.approx(2 * 0.75 / 1.75)
    assert table.best.interval == pytest.approx((0.300642, 0.954413), abs=1e-5)  # Wilson (1927), 3 of 4
    assert (table.pairs, table.matches) == (6, 3)


def test_a_precision_chooses_the_highest_threshold_that_has_it() -> None:
    table = thresholds(SCORES, MATCHES, [1.0, 1.5, 2.5, 4.0])
    wanted = table.with_precision(0.7)
    assert wanted is not None
    assert wanted.score == 2.5
    assert thresholds([1.0, 2.0], [False, True], [1.0, 2.0]).with_precision(0.9) is None


@pytest.mark.parametrize("matches", [[True] * 3, [False] * 3])
def test_thresholds_need_both_kinds_of_pairs(matches: list[bool]) -> None:
    with pytest.raises(InputError, match="pairs that match and pairs that do not"):
        thresholds([1, 2, 3], matches, [2])


def test_thresholds_below_all_scores_are_an_error() -> None:
    with pytest.raises(InputError, match=r"every score is above 0\.5"):
        thresholds([1, 2], [True, False], [0.5])


@given(st.lists(st.tuples(st.floats(1, 4), st.booleans()), min_size=2, max_size=30))
def test_a_higher_threshold_accepts_and_finds_no_less(judged: list[tuple[float, bool]]) -> None:
    scores, matches = zip(*judged, strict=True)
    if len(set(matches)) == 1:
        return
    table = thresholds(scores, matches, np.arange(1, 4.01, 0.25).tolist())
    for before, after in zip(table.rows, table.rows[1:], strict=False):
        assert after.accepted >= before.accepted
        assert after.recall >= before.recall
    for row in table.rows:
        assert row.interval[0] <= row.precision <= row.interval[1]
    assert table.rows[-1].accepted == len(scores)
