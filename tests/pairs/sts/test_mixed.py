"""The mixed variant: its evidence by hand and by loops, the ridge regression, and its folder."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from linker.errors import InputError
from linker.pairs.data import Pair
from linker.pairs.sts import recipe as sts
from linker.pairs.sts.cross_config import PRESETS
from linker.pairs.sts.cross_training import figures, mix
from linker.pairs.sts.evidence import Remembered, evidence, likeness, names, surface, words
from linker.pairs.sts.frozen import FrozenScorer
from linker.pairs.sts.mixed import MixedScorer, ridge
from linker.pairs.sts.scorer_folder import load
from tests.helpers import HashEncoder
from tests.pairs.sts.sts_helpers import graded_pairs


class Table(dict[str, np.ndarray]):
    """Vectors by text."""


def test_words_are_lower_case_and_characters_where_there_are_no_spaces() -> None:
    assert words("The cat's 2 Hüte_x") == ["the", "cat", "s", "2", "hüte", "x"]
    assert words("狗和cat") == ["狗", "和", "cat"]
    assert words("…") == []


def test_surface_by_hand() -> None:
    ngrams, same, numbers, lengths = surface("ab 12", "ab 12 12 cd")
    assert same == pytest.approx((1 * 1 + 1 * 2) / np.sqrt(2 * 6))
    assert (numbers, lengths) == (1.0, 0.5)
    assert 0 < ngrams < 1
    assert surface("a", "a") == pytest.approx((1, 1, 1, 1))
    assert surface("x1 of 5", "y1 of 7")[2] == pytest.approx(1 / 3)  # {1, 5} and {1, 7}
    assert surface("", "") == (0, 0, 1, 0)


def test_alignment_is_the_mean_over_both_sides_of_the_best_cosine() -> None:
    units = {"a": [1.0, 0], "b": [0, 1.0], "c": [0.6, 0.8], "a b": [0.8, 0.6]}
    table = {text: np.array(vector, np.float32) for text, vector in units.items()}
    cosine, alignment, weakest = likeness("a b", "c", table)
    assert cosine == pytest.approx(0.8 * 0.6 + 0.6 * 0.8)
    assert alignment == pytest.approx(((0.6 + 0.8) / 2 + 0.8) / 2)
    assert weakest == pytest.approx(0.6)
    table["!"] = table["a"]
    assert likeness("a b", "!", table)[1:] == (0, 0)


texts = st.text("ab 1", max_size=8)


@given(texts, texts)
def test_evidence_does_not_depend_on_the_order_of_a_pair(first: str, second: str) -> None:
    vectors = {"hash": Remembered(HashEncoder())}
    found = evidence([(first, second), (second, first)], vectors)
    assert found.shape == (2, len(names(["hash"])))
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_the_ridge_is_that_of_scikit_learn_on_standardised_columns() -> None:
    rng = np.random.default_rng(0)
    found = rng.normal(size=(40, 4)) * [1, 5, 0.1, 0] + 3
    gold = found @ [1, 0.2, 3, 0] + rng.normal(size=40)
    weights, offset = ridge(found, gold, 7.0)
    mean, scale = found.mean(0), found.std(0)
    oracle = Ridge(alpha=7.0).fit((found[:, :3] - mean[:3]) / scale[:3], gold)
    assert weights[:3] * scale[:3] == pytest.approx(oracle.coef_)
    assert weights[3] == 0
    assert found @ weights + offset == pytest.approx(oracle.predict((found[:, :3] - mean[:3]) / scale[:3]))


def mixed() -> MixedScorer:
    return MixedScorer({"16": HashEncoder(16), "32": HashEncoder(32, "other")})


def test_it_learns_and_loads_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoders = {"16": HashEncoder(16), "32": HashEncoder(32, "other")}
    for module in ("recipe", "scorer_folder"):
        monkeypatch.setattr(f"linker.pairs.sts.{module}.load_encoder", lambda name, **_: encoders[name])
    pairs = graded_pairs(200, length=6)
    lines: list[str] = []
    recipe = sts.Recipe(PRESETS["mixed"], "16,32")
    report = sts.train_and_save(recipe, pairs[:150], pairs[150:], tmp_path / "m", lines.append)
    assert report.dev["pearson"] > 0.95
    found = load(tmp_path / "m")
    other = pairs[150:]
    assert sts.figures(other, found) == report.dev
    distributions = found.probabilities([p.texts for p in other])
    assert distributions.sum(axis=1) == pytest.approx(np.ones(50), abs=1e-5)
    assert found.cosines([("rain", "rain")]) == pytest.approx([1.0], abs=1e-6)
    settings = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    settings["model"]["columns"] = ["cosine"]
    (tmp_path / "m" / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(InputError, match="train it again"):
        load(tmp_path / "m")


def test_the_deviation_is_the_error_on_held_out_folds() -> None:
    pairs = graded_pairs(200, length=6)
    rng = np.random.default_rng(0)
    scorer, gold = mixed(), np.clip([(p.gold or 0) for p in pairs] + rng.normal(size=200), 0, 5)
    scorer.fit([p.texts for p in pairs], gold)
    assert 0.5 < scorer.module.deviation.item() < 1.2  # the noise has 1, less what is clipped


def test_a_useless_head_is_scaled_to_nothing_and_a_good_one_is_kept() -> None:
    config = dataclasses.replace(PRESETS["frozen"], measure="pearson")
    scorer = FrozenScorer("16", HashEncoder(16), 0.0)
    dev = graded_pairs(120, length=6)
    cosine = figures(dev, scorer)["pearson"]  # the head of a new scorer is zero
    torch.manual_seed(0)
    with torch.no_grad():
        scorer.head.linear.weight.normal_(0, 20)
    assert figures(dev, scorer)["pearson"] < cosine - 0.2
    assert mix(scorer, dev, config)["pearson"] == pytest.approx(cosine)
    assert scorer.head.linear.weight.abs().sum() == 0
    with torch.no_grad():
        scorer.head.linear.bias.copy_(torch.tensor([0.0, 0, 0, 0, 0, 40]))
    found = [Pair(p.id, p.first, p.second, 5.0 - 0.01 * n) for n, p in enumerate(dev)]
    better = dataclasses.replace(config, measure="mse")
    assert mix(scorer, found, better)["mse"] < 0.1
    assert scorer.head.linear.bias[5] > 0
