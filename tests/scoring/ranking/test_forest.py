"""Trees read from LightGBM's text: its scores and Shapley values by definition; invalid models are refused."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import Float32Array, Float64Array
from linker.base.errors import InputError
from linker.scoring.ranking.forest import Forest, compact
from linker.scoring.ranking.ranker import BLENDED, contributions
from linker.scoring.ranking.shapley import Tree
from tests.scoring.ranking.test_pooled import made_pool, pooled_ranker

# Left of 0.5 in a: leaf 0 (1.0); otherwise left of 2 in b: leaf 1 (2.0), else leaf 2 (4.0).
WORKED = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=lambdarank
feature_names=a b
feature_infos=[0:9] [0:9]

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
threshold=0.5 2
decision_type=0 2
left_child=-1 -2
right_child=1 -3
leaf_value=1 2 4
internal_value=1.5 3
is_linear=0
shrinkage=1


Tree=1
num_leaves=1
num_cat=0
split_feature=
threshold=
decision_type=
left_child=
right_child=
leaf_value=0.25
internal_value=
is_linear=0
shrinkage=1


end of trees
"""


def grown(seed: int = 0, trees: int = 12) -> tuple[str, Float32Array]:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 5)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] + rng.normal(size=400) > 0.5).astype(int)
    data = lightgbm.Dataset(x, y, group=[20] * 20, feature_name=list("abcde"))
    settings_ = {
        "objective": "lambdarank", "num_leaves": 8, "verbose": -1, "use_missing": False, "num_threads": 1,
    }  # fmt: skip
    settings_ |= {"min_data_in_leaf": 5, "label_gain": [0, 1], "seed": seed}
    return lightgbm.train(settings_, data, trees).model_to_string(), x


def test_worked_trees() -> None:
    forest = Forest.read(WORKED)
    x = np.array([[0.5, 9], [0.6, 2], [0.6, 2.1]], dtype=np.float32)
    assert forest.scores(x).tolist() == [1.25, 2.25, 4.25]
    assert forest.contributions(x).tolist() == [[-0.5, 0, 1.75], [1.5, -1, 1.75], [1.5, 1, 1.75]]
    with pytest.raises(ValueError, match=r"shape \(3, 1\), expected \[n, 2\]"):
        Forest.read(WORKED).scores(np.zeros((3, 1), dtype=np.float32))


@pytest.mark.parametrize("seed", [0, 1])
def test_scores_are_lightgbms_and_contributions_add_up(seed: int) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    text, x = grown(seed)
    booster, forest = lightgbm.Booster(model_str=text), Forest.read(text)
    np.testing.assert_allclose(forest.scores(x), booster.predict(x), rtol=1e-12)
    assert forest.scores(x[:0]).shape == (0,)
    short = compact(text)
    assert len(short) < len(text)
    np.testing.assert_allclose(Forest.read(short).scores(x), booster.predict(x), atol=1e-5)
    np.testing.assert_allclose(lightgbm.Booster(model_str=short).predict(x), booster.predict(x), atol=1e-5)
    np.testing.assert_allclose(forest.contributions(x).sum(axis=1), forest.scores(x), atol=1e-6)


@pytest.mark.parametrize("block", [7, 1 << 16])
def test_scores_without_the_compiled_loop_are_the_same(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightgbm")
    text, x = grown(0, trees=40)
    forest = Forest.read(text)
    whole = forest.scores(x)
    monkeypatch.setattr("linker.scoring.ranking.forest.BLOCK", block)
    monkeypatch.setattr("indexes.kernels.load", lambda name: None)
    assert forest.scores(x).tolist() == whole.tolist()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("split_feature=0 1", "split_feature=0 2"),
        ("split_feature=0 1", "split_feature=-1 1"),
        ("split_feature=0 1", "split_feature=0"),
        ("right_child=1 -3", "right_child=0 -3"),  # a loop
        ("right_child=1 -3", "right_child=1 -4"),
        ("right_child=1 -3", "right_child=-3 -3"),
        ("left_child=-1 -2", "left_child=-1 0"),
        ("threshold=0.5 2", "threshold=nan 2"),
        ("threshold=0.5 2", "threshold=0.5 1e999"),
        ("leaf_value=1 2 4", "leaf_value=1 2"),
        ("leaf_value=1 2 4", "leaf_value=1 2 inf"),
        ("internal_value=1.5 3", "internal_value=1.5"),
        ("decision_type=0 2", "decision_type=1 2"),
        ("decision_type=0 2", "decision_type=0 10"),
        ("num_cat=0", "num_cat=1"),
        ("is_linear=0", "is_linear=1"),
        ("num_leaves=3", "num_leaves=0"),
        ("num_leaves=3", "num_leaves=999999999999"),
        ("num_leaves=3", "num_leaves=x"),
        ("num_class=1", "num_class=2"),
        ("max_feature_idx=1", "max_feature_idx=7"),
        ("feature_names=a b", "feature_names=a a"),
        ("feature_names=a b", "feature_names=a \x1b[31m"),
        ("feature_names=a b", "x=a b"),
        ("leaf_value=0.25", "leaf=0.25"),
    ],
)
def test_what_cannot_be_right_is_refused(old: str, new: str) -> None:
    assert old in WORKED
    with pytest.raises(InputError, match="the model does not hold trees"):
        Forest.read(WORKED.replace(old, new, 1))


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_edit_is_refused_or_scores_to_the_end(data: st.DataObject) -> None:
    text = WORKED
    for _ in range(data.draw(st.integers(1, 3))):
        numbers = list(re.finditer(r"-?\d+(\.\d+)?", text))
        match = data.draw(st.sampled_from(numbers))
        new = data.draw(
            st.sampled_from(["0", "1", "-1", "-2", "-3", "2", "3", "1e308", "nan", "99", "", "0x1"])
        )
        text = text[: match.start()] + new + text[match.end() :]
    try:
        forest = Forest.read(text)
    except InputError:
        return
    x = np.zeros((3, len(forest.names)), dtype=np.float32)
    assert forest.scores(x).shape == (3,)
    assert forest.contributions(x).shape == (3, len(forest.names) + 1)


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
