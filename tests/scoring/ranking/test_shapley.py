"""The contributions of features are Shapley values: by definition, and as computed by LightGBM."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.scoring.ranking.forest import Forest, compact
from linker.scoring.ranking.ranker import BLENDED, contributions
from linker.scoring.ranking.shapley import Tree
from tests.scoring.ranking.test_forest import WORKED, grown
from tests.scoring.ranking.test_pooled import made_pool, pooled_ranker

FEATURES = 4


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Return a tree grown by splitting one leaf after another; features repeat on a path."""
    splits = draw(st.integers(0, 6))
    children: list[list[int]] = []  # children of each split
    ends: list[tuple[int, int] | None] = [None]  # per leaf: its parent split and side
    for number in range(splits):
        leaf = draw(st.integers(0, number))
        if (end := ends[leaf]) is not None:
            children[end[0]][end[1]] = number
        children.append([-1 - leaf, -2 - number])
        ends[leaf] = (number, 0)
        ends.append((number, 1))
    floats = st.floats(-2, 2, allow_nan=False, width=16)

    def many(of: st.SearchStrategy[float], size: int) -> Float64Array:
        return np.array(draw(st.lists(of, min_size=size, max_size=size)), dtype=np.float64)

    left, right = np.array(children, dtype=np.int64).reshape(-1, 2).T
    feature = many(st.integers(0, FEATURES - 1), splits).astype(np.int64)
    count = many(st.integers(1, 9), splits + 1).astype(np.int64)
    return Tree(feature, many(floats, splits), left, right, np.zeros(splits), many(floats, splits + 1), count)


def expectation(tree: Tree, x: Float64Array, known: frozenset[int], node: int) -> tuple[float, int]:
    """Return the value of a node if only `known` features are known, and its training rows, by definition."""
    assert tree.count is not None
    if node < 0 or not len(tree.feature):
        leaf = -1 - node if node < 0 else 0
        return float(tree.leaf[leaf]), int(tree.count[leaf])
    (a, n), (b, m) = (expectation(tree, x, known, int(side[node])) for side in (tree.left, tree.right))
    if tree.feature[node] in known:
        return (a if x[tree.feature[node]] <= tree.threshold[node] else b), n + m
    return (a * n + b * m) / (n + m), n + m


def shapley(tree: Tree, x: Float64Array) -> list[float]:
    found = [0.0] * FEATURES
    for feature in range(FEATURES):
        others = [f for f in range(FEATURES) if f != feature]
        for size in range(FEATURES):
            weight = math.factorial(size) * math.factorial(FEATURES - size - 1) / math.factorial(FEATURES)
            for known in map(frozenset, itertools.combinations(others, size)):
                gain = expectation(tree, x, known | {feature}, 0)[0] - expectation(tree, x, known, 0)[0]
                found[feature] += weight * gain
    return [*found, expectation(tree, x, frozenset(), 0)[0]]


@settings(deadline=None, max_examples=60)
@given(st.lists(trees(), min_size=1, max_size=3), st.integers(0, 1 << 20))
def test_contributions_are_shapley_values(grove: list[Tree], seed: int) -> None:
    forest = Forest(("a", "b", "c", "d"), tuple(grove))
    x = np.random.default_rng(seed).uniform(-2, 2, size=(2, FEATURES))
    x[0, 0] = float(grove[0].threshold[0]) if len(grove[0].threshold) else 0.0  # equal goes left
    expected = [np.sum([shapley(tree, row) for tree in grove], axis=0) for row in x]
    np.testing.assert_allclose(forest.contributions(x), expected, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_contributions_are_lightgbms(seed: int) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    text, x = grown(seed, trees=30)
    expected = lightgbm.Booster(model_str=text).predict(x, pred_contrib=True)
    np.testing.assert_allclose(Forest.read(text).contributions(x), expected, atol=1e-9)
    np.testing.assert_allclose(Forest.read(compact(text)).contributions(x), expected, atol=1e-5)


def test_a_blends_contributions_add_up_to_its_scores() -> None:
    ranker = pooled_ranker()
    pool, _ = made_pool(3, queries=1)
    moved = contributions(ranker, pool, 3)
    scores = ranker.scores(pool)[pool.valid]
    assert len(moved) == len(scores)
    for candidate, score in zip(moved, scores, strict=True):
        assert len(candidate.features) == 3
        total = candidate.start + sum(candidate.features.values()) + candidate.rest
        assert total == pytest.approx(score, abs=1e-6)
    every = contributions(ranker, pool, 1000)
    assert all(abs(candidate.rest) < 1e-9 for candidate in every)
    words = pool.features[0, pool.valid[0], pool.names.index("bm25")].astype(float)
    blended = [candidate.features.get(BLENDED[0], 0.0) for candidate in every]
    np.testing.assert_allclose(blended, ranker.blend * (words - words.mean()) / words.std(), rtol=1e-6)


@pytest.mark.parametrize("counts", ["3 0 2", "3 1", "3 -1 2", "3 x 2", f"3 1 {1 << 50}"])
def test_counts_that_cannot_be_right_are_refused(counts: str) -> None:
    text = WORKED.replace("leaf_value=1 2 4", f"leaf_value=1 2 4\nleaf_count={counts}")
    with pytest.raises(InputError, match="the model does not hold trees"):
        Forest.read(text)


def test_a_compact_model_keeps_the_counts() -> None:
    text, _ = grown()
    counts = re.findall(r"leaf_count=.*", text)
    assert counts and re.findall(r"leaf_count=.*", compact(text)) == counts
