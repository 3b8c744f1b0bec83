"""Distinct numbers in arrays, against a set of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexes.arrays import distinct


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9)))
def test_distinct_numbers_are_those_of_a_set(numbers: list[int]) -> None:
    array = np.array(numbers, dtype=np.uint64)
    found = distinct(array)
    assert found.tolist() == sorted(set(numbers))
    assert found.dtype == array.dtype
    assert array.tolist() == numbers
