"""Precision and recall at every threshold, beside counting one by one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.review.curve import points

SCORE = st.one_of(st.just(math.nan), st.integers(0, 5).map(float))


@given(st.lists(st.tuples(SCORE, st.booleans()), max_size=20))
def test_each_point_is_what_counting_gives(judged: list[tuple[float, bool]]) -> None:
    found = points([score for score, _ in judged], [hit for _, hit in judged])
    whole = sum(hit for _, hit in judged)
    thresholds = sorted({score for score, _ in judged if not math.isnan(score)}, reverse=True)
    assert [p.threshold for p in found] == (thresholds if whole else [])
    for point in found:
        above = [hit for score, hit in judged if score >= point.threshold]
        assert (point.judged, point.relevant) == (len(above), sum(above))
        assert point.precision == pytest.approx(sum(above) / len(above))
        assert point.recall == pytest.approx(sum(above) / whole)
