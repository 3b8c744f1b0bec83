"""Sparse matrices stored on disk: the same values, and memory that can be released."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.disk.reading import mapping_of
from linker.crosslingual.pages.pages import column_sizes, count_terms, narrow
from linker.crosslingual.scoring.sparse import on_disk, release


def made(rows: int, columns: int, seed: int) -> sp.csr_array:
    values = np.random.default_rng(seed).random((rows, columns), np.float32)
    return sp.csr_array(np.where(values > 0.7, values, 0))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 99))
def test_a_matrix_on_the_disk_is_the_same_before_and_after_its_memory_is_given_back(
    rows: int, columns: int, seed: int
) -> None:
    matrix = made(rows, columns, seed)
    resting = on_disk(matrix)
    assert (mapping_of(resting.data) is not None) == (matrix.nnz > 0)
    for _ in range(2):
        np.testing.assert_array_equal(resting.toarray(), matrix.toarray())
        np.testing.assert_array_equal(column_sizes(resting), (matrix.toarray() > 0).sum(axis=0))
        release(resting)
    release(matrix)
    release(matrix.toarray())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full plays the full disk")
def test_a_full_disk_leaves_the_matrix_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = made(300, 300, 0)
    monkeypatch.setattr(
        "linker.crosslingual.scoring.sparse.TemporaryFile",
        lambda: Path("/dev/full").open("r+b", buffering=0),  # noqa: SIM115 - `on_disk` closes it
    )
    assert on_disk(matrix) is matrix


def test_no_temporary_directory_leaves_the_matrix_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    matrix = made(5, 5, 0)
    assert on_disk(matrix) is matrix


def test_columns_of_counts_take_four_bytes() -> None:
    """If row offsets are int64, scipy makes int64 columns, which made a matrix of n-grams 50 % larger."""
    terms = count_terms(["one two", "two"], str.split)
    assert terms.counts.indices.dtype == terms.counts[[1]].indices.dtype == np.int32
    assert narrow(np.array([0, 1 << 31])).dtype == np.int64
