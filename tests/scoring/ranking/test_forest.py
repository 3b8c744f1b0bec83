"""Trees read from LightGBM's text: the scores equal LightGBM's, and invalid models are refused."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import Float32Array
from linker.base.errors import InputError
from linker.scoring.ranking.forest import Forest, compact

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
