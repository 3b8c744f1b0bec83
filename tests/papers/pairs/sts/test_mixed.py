"""The mixed variant: its evidence by hand and by loops, the ridge regression, and its folder."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from linker.base.errors import InputError
from linker.scoring.pairs.data import Pair
from linker.scoring.pairs.sts import recipe as sts
from linker.scoring.pairs.sts.cross_config import PRESETS
from linker.scoring.pairs.sts.evidence import CachedVectors, alignment, evidence, names, products, surface
from linker.scoring.pairs.sts.mixed import MixedScorer, Regression, positive_ridge, ridge
from linker.scoring.pairs.sts.scorer_folder import load
from linker.scoring.pairs.words import lower_words
from tests.helpers import HashEncoder
from tests.papers.pairs.sts.sts_helpers import graded_pairs


class Table(dict[str, np.ndarray]):
    """Vectors by text."""


def test_words_are_lower_case_and_characters_where_there_are_no_spaces() -> None:
    assert lower_words("The cat's 2 Hüte_x") == ["the", "cat", "s", "2", "hüte", "x"]
    assert lower_words("狗和cat") == ["狗", "和", "cat"]
    assert lower_words("…") == []


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
    mean, weakest = alignment("a b", "c", table)
    assert mean == pytest.approx(((0.6 + 0.8) / 2 + 0.8) / 2)
    assert weakest == pytest.approx(0.6)
    table["!"] = table["a"]
    assert alignment("a b", "!", table) == (0, 0)


def test_only_the_first_encoder_reads_words() -> None:
    read: list[str] = []

    class Second(HashEncoder):
        def encode(self, texts: Any, **options: Any) -> Any:
            read.extend(texts)
            return super().encode(texts, **options)

    vectors = {"first": CachedVectors(HashEncoder(16)), "second": CachedVectors(Second(32, "other"))}
    found = evidence([("a b", "a c")], vectors)
    assert sorted(read) == ["a b", "a c"]
    u, v = (vectors["second"][text] for text in ("a b", "a c"))
    assert found[0, names(["first", "second"]).index("cosine of second")] == pytest.approx(float(u @ v))
    whole = products([("a b", "a c")], vectors)
    assert whole.shape == (1, 2 * 16 + 2 * 32)
    assert whole[0, -64:] == pytest.approx(np.concatenate([np.abs(u - v), u * v]))


texts = st.text("ab 1", max_size=8)


@given(texts, texts)
def test_evidence_does_not_depend_on_the_order_of_a_pair(first: str, second: str) -> None:
    vectors = {"hash": CachedVectors(HashEncoder())}
    found = evidence([(first, second), (second, first)], vectors)
    assert found.shape == (2, len(names(["hash"])))
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_the_ridge_is_that_of_scikit_learn_also_with_fewer_pairs_than_columns() -> None:
    rng = np.random.default_rng(0)
    found = rng.normal(size=(40, 4)) * [1, 5, 0.1, 0] + 3
    gold = found @ [1, 0.2, 3, 0] + rng.normal(size=40)
    weights, offset = ridge(found, gold, 7.0)
    mean, scale = found.mean(0), found.std(0)
    oracle = Ridge(alpha=7.0).fit((found[:, :3] - mean[:3]) / scale[:3], gold)
    assert weights[:3] * scale[:3] == pytest.approx(oracle.coef_)
    assert weights[3] == 0
    assert found @ weights + offset == pytest.approx(oracle.predict((found[:, :3] - mean[:3]) / scale[:3]))
    rng = np.random.default_rng(1)
    found, gold = rng.normal(size=(12, 30)), rng.normal(size=12)
    standard = (found - found.mean(0)) / found.std(0)
    weights, offset = ridge(found, gold, 3.0)
    oracle = Ridge(alpha=3.0).fit(standard, gold)
    assert weights * found.std(0) == pytest.approx(oracle.coef_)
    assert found @ weights + offset == pytest.approx(oracle.predict(standard))


def test_the_positive_ridge_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    found = rng.normal(size=(60, 5)) * [1, 5, 0.1, 2, 0] + 3
    gold = found @ [1, 0.2, 3, -1, 0] + rng.normal(size=60)
    weights, offset = positive_ridge(found, gold, 7.0)
    standard = (found - found.mean(0))[:, :4] / found.std(0)[:4]
    oracle = Ridge(alpha=7.0, positive=True, tol=1e-12).fit(standard, gold)
    assert weights[:4] * found.std(0)[:4] == pytest.approx(oracle.coef_, abs=1e-6)
    assert (weights[3], weights[4]) == (0, 0)
    assert found @ weights + offset == pytest.approx(oracle.predict(standard), abs=1e-5)


def test_a_free_column_has_no_penalty() -> None:
    """The oracle: a free column is scaled up so much that the penalty on its weight vanishes."""
    rng = np.random.default_rng(3)
    found = rng.normal(size=(50, 3))
    gold = found @ [1, 0.5, 0.7] + rng.normal(size=50)
    weights, offset = positive_ridge(found, gold, 20.0, [1])
    standard = (found - found.mean(0)) / found.std(0) * [1, 1e4, 1]
    oracle = Ridge(alpha=20.0, positive=True, tol=1e-14).fit(standard, gold)
    assert weights * found.std(0) == pytest.approx(oracle.coef_ * [1, 1e4, 1], abs=1e-5)
    assert found @ weights + offset == pytest.approx(oracle.predict(standard), abs=1e-5)
    alone, start = np.polyfit(found[:, 1], gold, 1)
    weights, offset = positive_ridge(found, gold, 1e9, [1])
    assert weights == pytest.approx([0, alone, 0], abs=1e-5)
    assert offset == pytest.approx(start, abs=1e-5)


def test_a_high_penalty_leaves_the_cosines_of_all_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linker.scoring.pairs.sts.mixed.CHOICES", (Regression(products=False, penalty=1e9),))
    pairs, scorer = graded_pairs(100, length=6), mixed()
    scorer.fit(pairs)
    weights = dict(zip(scorer.columns, scorer.module.linear.weight[0].tolist(), strict=True))
    assert {name for name, weight in weights.items() if weight > 1e-4} == {"cosine of 16", "cosine of 32"}


def test_evidence_of_likeness_never_lowers_a_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Common numbers go with low grades in these pairs, which need not hold for other pairs."""
    monkeypatch.setattr("linker.scoring.pairs.sts.mixed.CHOICES", (Regression(products=False, penalty=10.0),))
    rows = [(f"the cat number {n}", f"the cat number {n}" if n % 3 else "dogs", 0.5) for n in range(40)]
    rows += [(f"a b {n}", f"a b c {n + 1}", 4.5) for n in range(40)]
    scorer = MixedScorer({"16": HashEncoder(16)})
    scorer.fit([Pair(str(n), first, second, gold) for n, (first, second, gold) in enumerate(rows)])
    assert scorer.module.linear.weight.min() >= 0


def mixed() -> MixedScorer:
    return MixedScorer({"16": HashEncoder(16), "32": HashEncoder(32, "other")})


def test_it_learns_and_loads_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoders = {"16": HashEncoder(16), "32": HashEncoder(32, "other")}
    for module in ("recipe", "scorer_folder"):
        monkeypatch.setattr(
            f"linker.scoring.pairs.sts.{module}.load_encoder", lambda name, **_: encoders[name]
        )
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
    noisy = [dataclasses.replace(p, gold=g) for p, g in zip(pairs, gold.tolist(), strict=True)]
    scorer.fit(noisy)
    assert 0.5 < scorer.module.deviation.item() < 1.2  # that of the noise is 1, less what clipping removes


def test_dev_pairs_choose_if_they_are_asked_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    encoders = {"16": HashEncoder(16)}
    for module in ("recipe", "scorer_folder"):
        monkeypatch.setattr(
            f"linker.scoring.pairs.sts.{module}.load_encoder", lambda name, **_: encoders[name]
        )
    pairs = graded_pairs(120, length=6)
    # The grades of these dev pairs depend only on a hash of the whole text.
    secret = np.random.default_rng(0).normal(size=16)
    read = CachedVectors(encoders["16"])
    read.read(text for pair in pairs for text in pair.texts)
    signal = np.array([(read[p.first] * read[p.second]) @ secret for p in pairs])
    grades = np.clip(2.5 + 1.5 * (signal - signal.mean()) / signal.std(), 0, 5)
    other = [dataclasses.replace(p, gold=float(g)) for p, g in zip(pairs, grades, strict=True)]
    recipe = sts.Recipe(dataclasses.replace(PRESETS["mixed"], choose="dev"), "16")
    lines: list[str] = []
    sts.train_and_save(recipe, [*pairs[:60], *other[60:]], pairs[60:], tmp_path / "a", lines.append)
    sts.train_and_save(recipe, [*pairs[:60], *other[60:]], other[60:], tmp_path / "b", lines.append)
    assert "products" not in lines[0]
    assert "likeness and products of vectors" in lines[1]
    settings = json.loads((tmp_path / "b" / "config.json").read_text(encoding="utf-8"))
    assert settings["model"]["products"] is True
    assert load(tmp_path / "b").score([("a", "a")]).shape == (1,)
    with pytest.raises(InputError, match="choose=dev needs dev pairs"):
        sts.train_and_save(recipe, pairs, [], tmp_path / "c", lines.append)


def test_pairs_of_one_sentence_cannot_be_divided_into_folds() -> None:
    pairs = [Pair(str(n), "a sentence", f"another {n}", float(n)) for n in range(4)]
    with pytest.raises(InputError, match="4 pairs that share sentences or ids cannot be divided"):
        MixedScorer({"16": HashEncoder(16)}).fit(pairs)
    MixedScorer({"16": HashEncoder(16)}).fit(pairs, graded_pairs(4))  # choices are made on dev pairs
