"""Folds: every link once, all links of a page together, assigned by a hash of the content."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.features import candidate_lists, with_pairs
from linker.crosslingual.ranking.folds import divisions_of, folds_of, held_out
from linker.crosslingual.ranking.interface import Learned
from linker.crosslingual.ranking.learning import out_of_fold
from linker.crosslingual.scoring.graph import NEAREST, Graph
from linker.scoring.ranking.lists import CandidateLists
from tests.crosslingual.synthetic import twin
from tests.crosslingual.tiny import numbered

ROWS = st.lists(st.integers(0, 19), min_size=1, max_size=40)


def pages() -> Pages:
    return numbered([f"text {n}" for n in range(20)], "p")


@settings(max_examples=50, deadline=None)
@given(ROWS, st.integers(1, 7), st.integers(0, 5))
def test_every_link_is_in_one_fold_with_those_of_its_page(rows: list[int], folds: int, seed: int) -> None:
    links = np.stack([np.array(rows), np.arange(len(rows))], axis=1)
    parts = folds_of(links, pages(), folds, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(rows)))
    sizes = [len(set(links[part, 0].tolist())) for part in parts]
    assert sum(sizes) == len(set(rows)) and len(sizes) == min(folds, len(set(rows)))
    assert max(sizes) - min(sizes) <= 1 and all(np.diff(part).min(initial=1) > 0 for part in parts)


def test_the_content_and_the_seed_decide() -> None:
    links = np.stack([np.arange(20), np.arange(20)], axis=1)
    texts = pages().texts
    order = np.random.default_rng(0).permutation(20)
    moved = numbered([texts[i] for i in order], "other")

    def contents(pages: Pages, seed: int) -> list[set[str]]:
        return [{pages.texts[i] for i in part} for part in folds_of(links, pages, 4, seed)]

    assert contents(pages(), 0) == contents(moved, 0)
    assert contents(pages(), 0) != contents(pages(), 1)


def test_few_links_are_divided_several_times_and_each_time_otherwise() -> None:
    def pairs(n: int) -> Int64Array:
        return np.stack([np.arange(n), np.arange(n)], axis=1)

    assert [divisions_of(pairs(n)) for n in (0, 20, 242, 330, 538, 700, 920, 5000)] == [
        4, 4, 4, 3, 2, 1, 1, 1,
    ]  # fmt: skip
    assert divisions_of(np.zeros((5000, 2), np.int64)) == 4  # many targets, but a single page
    folds = held_out(pairs(20), pages(), 4, seed=1, divisions=3)
    assert len(folds) == 12
    for division in range(3):
        part = folds[4 * division : 4 * division + 4]
        assert sorted(np.concatenate(part).tolist()) == list(range(20))
    assert len({tuple(fold.tolist()) for fold in folds}) == 12
    np.testing.assert_array_equal(folds[0], folds_of(pairs(20), pages(), 4, seed=1)[0])


def test_no_link_of_a_page_teaches_its_own_description(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = twin(pages=40)
    evidence, links, unlinked = (
        AllEvidence(corpus.source, corpus.target),
        corpus.links[:24],
        np.arange(24, 40),
    )
    learned, learn, taught = evidence.learn(links), AllEvidence.learn, list[Int64Array]()

    def spy(self: AllEvidence, links: Int64Array) -> Learned:
        taught.append(links)
        return learn(self, links)

    monkeypatch.setattr(AllEvidence, "learn", spy)
    parts = out_of_fold(evidence, links, unlinked, learned=learned, folds=3)
    assert len(parts) == len(taught) == 3
    for part, teachers in zip(parts, taught, strict=True):
        assert sorted([*teachers[:, 0].tolist(), *part.lists.rows.tolist()]) == list(range(24))


RNG = np.random.default_rng(5)


def listed(values: Float32Array, graph: Graph, rows: Int64Array, size: int) -> CandidateLists:
    order = np.arange(values.shape[1])
    return candidate_lists(
        {"a": values[graph.rows, graph.columns]}, graph, rows, choosing=("a",), order=order, size=size
    )


def complete(n: int, m: int) -> Graph:
    return Graph.of(np.repeat(np.arange(n), m), np.tile(np.arange(m), n), (n, m))


def test_features_are_those_of_brute_force() -> None:
    values = RNG.random((9, 8)).astype(np.float32)
    inside = RNG.random((9, 8)) < 0.7
    inside[[1, 4, 7, 0], :3] = True
    present = np.nonzero(inside)
    graph = Graph.of(present[0], present[1], (9, 8))
    rows = np.array([1, 4, 7, 0])
    lists = listed(values, graph, rows, 3)
    assert lists.names == ("a.z", "a.row", "a.column", "a.margin", "chosen.gap")

    def deviation(axis: int) -> tuple[list[Float32Array], list[float]]:
        lines = [
            values[i][inside[i]] if axis == 0 else values[:, i][inside[:, i]] for i in range((9, 8)[axis])
        ]
        overall = sum(((line - line.mean()) ** 2).sum() for line in lines if len(line)) / inside.sum()
        spread = [
            np.sqrt((((x - x.mean()) ** 2).sum() + overall) / (len(x) + 1)) if len(x) else 0 for x in lines
        ]
        return lines, spread

    (by_row, row_spread), (by_column, column_spread) = deviation(0), deviation(1)
    for n, i in enumerate(rows.tolist()):
        for c, j in enumerate(lists.targets[n].tolist()):
            assert inside[i, j]
            value, row, column = values[i, j], by_row[i], by_column[j]
            near = (np.sort(row)[-NEAREST:].sum() + np.sort(column)[-NEAREST:].sum()) / NEAREST / 2
            expected = [
                (value - row.mean()) / row_spread[i],
                (value - max(row[row != value], default=0)) / row_spread[i],
                (value - max(column[column != value], default=0)) / column_spread[j],
                value / near,
            ]
            np.testing.assert_allclose(lists.features[n, c, :4], expected, rtol=1e-3, atol=1e-4)
    assert (lists.features[:, 0, 4] == 0).all()
    assert (np.diff(lists.features[:, :, 4], axis=1) <= 0).all()


def test_scores_of_nothing_do_not_favour_the_diagonal() -> None:
    n = 200
    nothing = np.zeros((n, n), np.float32)
    order = RNG.permutation(n)
    lists = candidate_lists(
        {"a": nothing.ravel()}, complete(n, n), np.arange(n), choosing=("a",), order=order, size=50
    )
    assert np.isfinite(lists.features).all()
    assert (lists.targets[:, 0] == np.arange(n)).mean() < 0.05
    # all candidates look alike, including the right one
    assert (lists.features == lists.features[0, 0]).all()


def test_a_page_with_one_pair_has_finite_features() -> None:
    values = RNG.random((3, 4)).astype(np.float32)
    graph = Graph.of(np.array([0, 0, 0, 0, 1, 2]), np.array([0, 1, 2, 3, 3, 0]), (3, 4))
    lists = listed(values, graph, np.array([1, 2]), 1)
    assert lists.targets.tolist() == [[3], [0]]
    assert np.abs(lists.features).max() < 100


def test_the_right_candidate_is_found_or_missing() -> None:
    values = np.array([[3, 2, 1], [1, 2, 3]], np.float32)
    lists = listed(values, complete(2, 3), np.arange(2), 2)
    assert lists.right({0: 1, 1: 0}).tolist() == [1, -1]
    assert lists.right({}).tolist() == [-1, -1]


def test_pair_scores_are_appended_relative_to_the_list() -> None:
    values = np.array([[3, 2, 1]], np.float32)
    lists = listed(values, complete(1, 3), np.arange(1), 3)
    more = with_pairs(lists, np.array([[[1.0], [4.0], [2.0]]], np.float32), ("p",))
    assert more.names[-3:] == ("p.value", "p.z", "p.row")
    spread = np.std([1, 4, 2])
    np.testing.assert_allclose(more.features[0, :, -1], np.array([1 - 4, 4 - 2, 2 - 4]) / spread, rtol=1e-5)
    np.testing.assert_allclose(more.features[0, :, -3], [1, 4, 2])
