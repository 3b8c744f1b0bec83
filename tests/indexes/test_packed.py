"""Packed ids against lists and dictionaries of strings."""

import os
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import cores, packed
from indexes.arrays import distinct
from indexes.packed import PackedIds, repeated

IDS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=40)


pack = PackedIds.of


@given(st.lists(IDS, max_size=60), st.lists(IDS, max_size=5))
def test_packed_ids_are_those_that_were_packed(ids: list[str], others: list[str]) -> None:
    for found in (pack(ids), PackedIds.joined([pack(ids[:1]), pack(ids[1:])])):
        assert (list(found), len(found), found[:]) == (ids, len(ids), ids)
        assert [found[row] for row in range(len(ids))] == ids
        assert found[1:7] == ids[1:7]
        assert found[::2] == ids[::2]
        assert found == ids
        assert [found == other for other in ([*ids, "x"], [*ids[:-1], "\n"], "x", None)] == [False] * 4
        for id_ in [*ids, *others, "", *(id_[:-1] for id_ in ids), *(f"{id_}x" for id_ in ids), "\ud800"]:
            assert found.rows(id_) == [row for row, other in enumerate(ids) if other == id_]


@given(st.lists(IDS, max_size=60), st.lists(IDS, max_size=5), st.sampled_from([0, packed.FEW]))
def test_few_ids_are_found_as_many_are(ids: list[str], others: list[str], few: int) -> None:
    sought = [*ids[::2], *others, "", "\ud800"]
    expected = [(a, b) for a, id_ in enumerate(sought) for b, other in enumerate(ids) if other == id_]
    with mock.patch.object(packed, "FEW", few):
        for found in (pack(ids), PackedIds.joined([pack(ids[:1]), pack(ids[1:])])):
            for form in (sought, pack(sought)):
                places, rows = found.find(form)
                assert sorted(zip(places.tolist(), rows.tolist(), strict=True)) == expected


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12), st.data())
def test_repeated_ids_are_found_among_live_rows(ids: list[str], data: st.DataObject) -> None:
    live = data.draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
    cut = data.draw(st.integers(0, len(ids)))
    counts = Counter(id_ for id_, alive in zip(ids, live, strict=True) if alive)
    expected = {id_ for id_, count in counts.items() if count > 1}
    mask = np.array(live)
    parts = [ids[:cut], pack(ids[cut:])]
    assert set(repeated(parts, [mask[:cut], mask[cut:]])) == expected


def test_equal_hashes_are_not_taken_for_equal_ids() -> None:
    with (
        mock.patch.object(packed, "_hashes", lambda data, starts: np.zeros(len(starts) - 1, dtype=np.uint64)),
        mock.patch.object(packed, "_hash_of", lambda data: 0),
    ):
        ids = pack(["a", "b", "a"])
        assert (ids.rows("a"), ids.rows("b"), ids.rows("c")) == ([0, 2], [1], [])
        assert len(ids.find(["a", "c"] * packed.FEW)[1]) == 2 * packed.FEW
        assert repeated([ids], [None]) == ["a"]
        assert repeated([ids], [np.array([True, True, False])]) == []


def hashed(id_: str) -> int:
    """Return the hash of an id, word by word of eight bytes."""
    data, factor, whole = id_.encode(), int(packed.FACTOR), 1 << 64
    found = int(packed.SALT) ^ len(data) * factor % whole
    for begin in range(0, len(data), 8):
        mixed = (found ^ int.from_bytes(data[begin : begin + 8], "little")) * factor % whole
        found = mixed ^ mixed >> 32
    return found


@given(st.lists(IDS, min_size=1, max_size=40))
def test_hashes_are_those_of_each_id_alone(ids: list[str]) -> None:
    found = pack(ids)
    expected = [hashed(id_) for id_ in ids]
    assert found.hashes.tolist() == expected
    found.forget()
    assert found.hashes.tolist() == expected


def test_a_row_beyond_the_last_does_not_exist() -> None:
    with pytest.raises(IndexError):
        pack(["a"])[1]


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9)))
def test_distinct_numbers_are_those_of_a_set(numbers: list[int]) -> None:
    array = np.array(numbers, dtype=np.uint64)
    found = distinct(array)
    assert found.tolist() == sorted(set(numbers))
    assert found.dtype == array.dtype
    assert array.tolist() == numbers


@pytest.mark.parametrize(
    ("quota", "count"), [("max 100000", 8), ("150000 100000", 2), ("50000 100000", 1), ("", 8)]
)
def test_quotas_bound_the_cores(
    quota: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    monkeypatch.setattr(cores, "QUOTA", tmp_path / "cpu.max")
    assert cores.cores() == 8  # without control groups
    (tmp_path / "cpu.max").write_text(quota + "\n")
    assert cores.cores() == count
