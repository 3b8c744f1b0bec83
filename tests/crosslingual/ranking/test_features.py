"""Features of candidates, against brute force; the traps: order of input, gold on the diagonal, empty pages."""

import numpy as np
import pytest

from linker.crosslingual.ranking.features import NEAREST, candidate_lists, with_pairs
from linker.crosslingual.scoring.scores import Dense

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("memory", [1 << 30, 0])
def test_features_are_those_of_brute_force(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linker.crosslingual.ranking.features.MEMORY", memory)
    monkeypatch.setattr("linker.crosslingual.ranking.features.BLOCK", 3)
    values = RNG.random((9, 8)).astype(np.float32)
    rows, rivals, columns = np.array([1, 4, 7, 0]), np.array([2, 8]), np.array([6, 0, 3, 5, 7])
    lists = candidate_lists({"a": Dense(values)}, rows, rivals, columns, choosing=("a",), size=3)
    assert lists.names == ("a.z", "a.row", "a.column", "a.margin", "chosen.gap")
    seen = values[np.ix_(np.concatenate([rows, rivals]), columns)]
    for i in range(len(rows)):
        for c, target in enumerate(lists.targets[i]):
            j = columns.tolist().index(target)
            row, column, value = seen[i], seen[:, j], seen[i, j]
            near = (np.sort(row)[-NEAREST:].mean() + np.sort(column)[-NEAREST:].mean()) / 2
            expected = [
                (value - row.mean()) / row.std(),
                (value - np.delete(row, j).max()) / row.std(),
                (value - np.delete(column, i).max()) / column.std(),
                value / near,
            ]
            np.testing.assert_allclose(lists.features[i, c, :4], expected, rtol=1e-3, atol=1e-4)
    assert (lists.features[:, 0, 4] == 0).all()
    assert (np.diff(lists.features[:, :, 4], axis=1) <= 0).all()


def test_scores_of_nothing_do_not_favour_the_diagonal() -> None:
    n = 200
    columns = RNG.permutation(n)  # the caller gives targets in the order of a hash
    nothing = Dense(np.zeros((n, n), np.float32))
    lists = candidate_lists({"a": nothing}, np.arange(n), np.arange(0), columns, choosing=("a",))
    assert np.isfinite(lists.features).all()
    assert (lists.targets[:, 0] == np.arange(n)).mean() < 0.05
    assert (lists.features == lists.features[0, 0]).all()  # all candidates look alike, the right one too


def test_candidates_do_not_depend_on_the_order_of_rows() -> None:
    values = RNG.random((30, 40)).astype(np.float32)
    order = RNG.permutation(30)
    columns = np.arange(40)
    one = candidate_lists({"a": Dense(values)}, np.arange(30), np.arange(0), columns, choosing=("a",), size=5)
    two = candidate_lists({"a": Dense(values)}, order, np.arange(0), columns, choosing=("a",), size=5)
    np.testing.assert_array_equal(one.targets[order], two.targets)
    np.testing.assert_allclose(one.features[order], two.features, atol=1e-4)


def test_the_right_candidate_is_found_or_missing() -> None:
    values = np.array([[3, 2, 1], [1, 2, 3]], np.float32)
    lists = candidate_lists(
        {"a": Dense(values)}, np.arange(2), np.arange(0), np.arange(3), choosing=("a",), size=2
    )
    assert lists.right({0: 1, 1: 0}).tolist() == [1, -1]
    assert lists.right({}).tolist() == [-1, -1]


def test_pair_scores_are_appended_relative_to_the_list() -> None:
    values = np.array([[3, 2, 1]], np.float32)
    lists = candidate_lists({"a": Dense(values)}, np.arange(1), np.arange(0), np.arange(3), choosing=("a",))
    more = with_pairs(lists, np.array([[[1.0], [4.0], [2.0]]], np.float32), ("p",))
    assert more.names[-3:] == ("p.value", "p.z", "p.row")
    spread = np.std([1, 4, 2])
    np.testing.assert_allclose(more.features[0, :, -1], np.array([1 - 4, 4 - 2, 2 - 4]) / spread, rtol=1e-5)
    np.testing.assert_allclose(more.features[0, :, -3], [1, 4, 2])
