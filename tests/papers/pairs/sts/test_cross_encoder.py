"""The Cross-BERT-GRU: worked numbers, pooling, padding, folders, and that it learns."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import ConfigError, InputError, LinkerError
from linker.evaluation.correlation import mse
from linker.scoring.pairs.backbone import load_backbone
from linker.scoring.pairs.sts import recipe as sts
from linker.scoring.pairs.sts.cross_config import PRESETS, CrossConfig, StsConfig
from linker.scoring.pairs.sts.cross_encoder import CrossBertGru, CrossEncoder, Tokens, masked_pool
from linker.scoring.pairs.sts.cross_training import _merit, loss_of, split_dev, train
from linker.scoring.pairs.sts.frozen import FrozenScorer
from linker.scoring.pairs.sts.scorer import PairScorer, argmax_value, expected_value, hard_labels, soft_labels
from linker.scoring.pairs.sts.scorer_folder import load, save
from tests.helpers import WORDS, HashEncoder, tiny_bert
from tests.papers.pairs.sts.sts_helpers import graded_pairs

P = [[0.05, 0.05, 0.1, 0.2, 0.4, 0.2], [0.7, 0.2, 0.1, 0, 0, 0], [0.1, 0.1, 0.3, 0.3, 0.1, 0.1]]
GOLD = [4.4, 0.2, 2.5]
TEXTS = [p.texts for p in graded_pairs(9, length=4)] + [
    ("nel", " ".join(WORDS[:30])),
    ("", ""),
    ("!", "nel nel"),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny"), WORDS)


def scorer(tiny: Path, config: CrossConfig) -> CrossEncoder:
    torch.manual_seed(1)
    return CrossEncoder.new(config, load_backbone(tiny))


def perturbed(found: PairScorer) -> PairScorer:
    """Give a fresh scorer, whose head may be all zeros, some weights."""
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in found.head.parameters():
            parameter.add_(torch.randn_like(parameter) / 4)
    return found


def test_worked_numbers() -> None:
    assert expected_value(P) * 5 == pytest.approx([3.45, 0.40, 2.50])
    wanted = np.array(GOLD) / 5
    assert mse(expected_value(P), wanted) == pytest.approx(0.012567, abs=5e-7)
    assert mse(argmax_value(P), wanted) == pytest.approx(0.006, abs=1e-12)
    assert hard_labels([0.5, 1.5, 2.5, 4.4, 4.5, 5, -1, 7]).tolist() == [1, 2, 3, 4, 5, 5, 0, 5]
    assert soft_labels([2.25, 5, 0]).tolist() == [
        [0, 0, 0.75, 0.25, 0, 0],
        [0, 0, 0, 0, 0, 1],
        [1, 0, 0, 0, 0, 0],
    ]


@given(st.floats(0, 5))
def test_soft_labels_are_a_distribution_whose_mean_is_the_score(score: float) -> None:
    label = soft_labels([score])
    assert label.sum() == pytest.approx(1, abs=1e-6)
    assert expected_value(label)[0] * 5 == pytest.approx(score, abs=1e-5)


def test_losses_are_what_their_formulas_say() -> None:
    logits = torch.tensor(np.log(np.array(P) + 1e-9), dtype=torch.float32)
    gold = np.array(GOLD)
    chosen = [math.log(P[0][4] + 1e-9), math.log(P[1][0] + 1e-9), math.log(P[2][3] + 1e-9)]
    assert loss_of(logits, gold, "cross-entropy").item() == pytest.approx(-np.mean(chosen), rel=1e-5)
    squared = np.mean((np.array([3.45, 0.40, 2.50]) - gold) ** 2)
    assert loss_of(logits, gold, "mse").item() == pytest.approx(squared, rel=1e-5)
    soft = -np.mean(
        [(row * np.log(np.array(p) + 1e-9)).sum() for row, p in zip(soft_labels(gold), P, strict=True)]
    )
    assert loss_of(logits, gold, "soft").item() == pytest.approx(soft, rel=1e-5)
    assert loss_of(logits, gold, "soft+mse").item() == pytest.approx(soft + squared, rel=1e-5)


def test_pooling_is_what_a_loop_over_the_kept_places_gives() -> None:
    rng = np.random.default_rng(0)
    states, mask = rng.normal(size=(5, 7, 3)) - 4, rng.random((5, 7)) < 0.5
    mask[3] = False
    pooled = masked_pool(torch.tensor(states), torch.tensor(mask)).numpy()
    for row, kept, found in zip(states, mask, pooled, strict=True):
        inside = row[kept]
        wanted = np.concatenate([inside.mean(0), inside.max(0)]) if kept.any() else np.zeros(6)
        assert found == pytest.approx(wanted)


def test_separators_and_padding_are_not_pooled_and_the_start_is(tiny: Path) -> None:
    found = scorer(tiny, CrossConfig(hidden=8))
    tokens = found.backbone.tokens(["nel", ""], ["dom ras", ""])
    places = found.module._pooled_places(tokens)
    names = found.backbone.tokenizer.convert_ids_to_tokens(tokens["input_ids"][0])
    assert [n for n, kept in zip(names, places[0].tolist(), strict=True) if kept] == [
        n for n in names if n not in ("[SEP]", "[PAD]")
    ]
    assert names[0] == "[CLS]"
    assert not places[1].any()


@pytest.mark.parametrize("siamese", [False, True])
@pytest.mark.parametrize("both_orders", [False, True])
def test_padding_changes_no_prediction(tiny: Path, siamese: bool, both_orders: bool) -> None:
    found = perturbed(scorer(tiny, CrossConfig(hidden=8, siamese=siamese, both_orders=both_orders)))
    alone = np.concatenate([found.probabilities([pair]) for pair in TEXTS])
    assert found.probabilities(TEXTS, batch_size=len(TEXTS)) == pytest.approx(alone, abs=1e-5)
    assert found.probabilities(TEXTS, batch_size=3) == pytest.approx(alone, abs=1e-5)
    assert alone.sum(axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    assert len(np.unique(found.score(TEXTS).round(4))) > 5
    assert found.score(TEXTS) == pytest.approx(expected_value(alone), abs=1e-5)
    assert found.score([]).shape == (0,)


def test_a_query_is_read_once_for_all_its_candidates(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = perturbed(scorer(tiny, CrossConfig(hidden=8, siamese=True)))
    pairs = [(TEXTS[0][0], candidate) for _, candidate in (*TEXTS[:4], TEXTS[2])]
    alone = np.concatenate([found.score([pair]) for pair in pairs])
    embedding, read = CrossBertGru.embedding, []

    def counting(module: CrossBertGru, tokens: Tokens) -> torch.Tensor:
        read.append(len(tokens["input_ids"]))
        return embedding(module, tokens)

    monkeypatch.setattr(CrossBertGru, "embedding", counting)
    assert found.score(pairs) == pytest.approx(alone, abs=1e-5)
    assert read == [1, 4]


def test_both_orders_make_the_score_symmetric(tiny: Path) -> None:
    found = perturbed(scorer(tiny, CrossConfig(hidden=8, siamese=True, both_orders=True)))
    assert found.score(TEXTS) == pytest.approx(found.score([(b, a) for a, b in TEXTS]), abs=1e-5)


def test_an_untrained_siamese_model_ranks_by_the_cosine(tiny: Path) -> None:
    found = scorer(tiny, CrossConfig(hidden=8, siamese=True))
    pairs = TEXTS[:9]
    assert np.argsort(found.score(pairs)).tolist() == np.argsort(found.cosines(pairs)).tolist()
    loop = []
    for pair in pairs:
        with torch.inference_mode():
            u, v = (found.module.embedding(found.backbone.tokens([text]))[0] for text in pair)
        loop.append(float(u @ v))
    assert found.cosines(pairs) == pytest.approx(loop, abs=1e-5)


SMALL = StsConfig(hidden=16, epochs=5, batch_size=16, lr=1e-3, head_lr=5e-3, max_length=32)


def test_training_learns_and_moves_backbone_and_head(tiny: Path) -> None:
    pairs = graded_pairs(160)
    rest, dev = split_dev(pairs, 0.2, 0)
    found = scorer(tiny, SMALL.model)
    before = {name: value.clone() for name, value in found.module.state_dict().items()}
    lines: list[str] = []
    report = train(found, rest, dev, SMALL, lines.append)
    after = found.module.state_dict()
    moved = {name.split(".")[0] for name in after if not torch.equal(after[name], before[name])}
    assert moved == {"bert", "gru", "head"}
    assert report.dev["spearman"] > 0.8
    shown = [json.loads(line) for line in lines]
    assert max(line["spearman"] for line in shown) == report.dev["spearman"] == shown[report.kept]["spearman"]
    assert sts.figures(dev, found)["spearman"] == pytest.approx(report.dev["spearman"], abs=1e-4)


@pytest.mark.parametrize(
    "settings", [{}, {"siamese": False, "loss": "cross-entropy", "precision": "bfloat16"}]
)
def test_the_same_seed_gives_the_same_model(tiny: Path, settings: dict[str, object]) -> None:
    config = dataclasses.replace(SMALL, epochs=1, **settings)  # type: ignore[arg-type]  # settings of several types
    found = []
    for _ in range(2):
        one = scorer(tiny, config.model)
        train(one, graded_pairs(40), [], config)
        found.append(one.probabilities(TEXTS))
    assert (found[0] == found[1]).all()


def test_frozen_layers_stay(tiny: Path) -> None:
    config = dataclasses.replace(SMALL, epochs=1, frozen_layers=1)
    found = scorer(tiny, config.model)
    before = {name: value.clone() for name, value in found.module.state_dict().items()}
    train(found, graded_pairs(40), [], config)
    moved = {
        name for name, value in found.module.state_dict().items() if not torch.equal(value, before[name])
    }
    assert not any(name.startswith(("bert.embeddings", "bert.encoder.layer.0")) for name in moved)
    assert any(name.startswith("bert.encoder.layer.1") for name in moved)
    with pytest.raises(LinkerError, match="has 2 layers"):
        train(found, graded_pairs(40), [], dataclasses.replace(config, frozen_layers=3))


def test_a_loss_that_is_no_number_stops_the_training(tiny: Path) -> None:
    found = scorer(tiny, SMALL.model)
    with torch.no_grad():
        found.head.linear.bias.fill_(math.nan)
    with pytest.raises(LinkerError, match="lower lr"):
        train(found, graded_pairs(20), [], SMALL)


@pytest.mark.parametrize("siamese", [False, True])
def test_a_saved_model_predicts_the_same(tiny: Path, tmp_path: Path, siamese: bool) -> None:
    found = perturbed(scorer(tiny, CrossConfig(hidden=8, siamese=siamese, max_length=20)))
    folder = tmp_path / "model"
    save(found, folder, "Trained on nothing.")
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert {"README.md", "config.json", "model.safetensors", "backbone/config.json"} <= names
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in names)
    assert "Trained on nothing." in (folder / "README.md").read_text(encoding="utf-8")
    assert (load(folder).probabilities(TEXTS) == found.probabilities(TEXTS)).all()
    save(perturbed(found), folder)  # replaces
    assert (load(folder).probabilities(TEXTS) == found.probabilities(TEXTS)).all()


def test_damaged_and_foreign_folders_are_named(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    save(scorer(tiny, CrossConfig(hidden=8)), folder)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(InputError, match=r"model.safetensors is damaged"):
        load(folder)
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match=r"model.safetensors is missing or damaged"):
        load(folder)
    (folder / "config.json").write_text('{"format": "linker-cross-9"}', encoding="utf-8")
    with pytest.raises(InputError, match=r"format 'linker-cross-9'"):
        load(folder)
    with pytest.raises(InputError, match=r"linker sts train"):
        load(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="holds no scorer"):
        save(scorer(tiny, CrossConfig(hidden=8)), tmp_path / "full")


def test_frozen_variant_learns_and_loads_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "linker.scoring.pairs.sts.scorer_folder.load_encoder", lambda name, **_: HashEncoder(int(name))
    )
    pairs = graded_pairs(200)
    found = FrozenScorer("16", HashEncoder(16))
    config = dataclasses.replace(PRESETS["frozen"], batch_size=20, epochs=3)
    report = train(found, pairs[:150], pairs[150:], config)
    assert report.dev["pearson"] > 0.7
    save(found, tmp_path / "m")
    assert (load(tmp_path / "m").probabilities(TEXTS) == found.probabilities(TEXTS)).all()
    settings = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    settings["backbone"] = "8"
    (tmp_path / "m" / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(InputError, match="not the one that the scorer's head was trained on"):
        load(tmp_path / "m")


def test_presets_and_overrides() -> None:
    paper = sts.configure("paper", [])
    assert (paper.lr, paper.head_lr, paper.batch_size, paper.epochs, paper.dropout) == (
        1e-5,
        1e-5,
        64,
        10,
        0.1,
    )
    assert (paper.hidden, paper.max_length, paper.siamese, paper.loss) == (256, 128, False, "cross-entropy")
    assert sts.configure("recommended", ["epochs=2", "loss=mse"]) == dataclasses.replace(
        PRESETS["recommended"], epochs=2, loss="mse"
    )
    with pytest.raises(ConfigError, match=r"unknown key epoch: did you mean epochs\?"):
        sts.configure("paper", ["epoch=2"])


def test_cross_validation_predicts_every_pair_by_a_model_that_did_not_see_it(tiny: Path) -> None:
    config = dataclasses.replace(SMALL, epochs=1)
    found = sts.cross_validate(sts.Recipe(config, str(tiny)), graded_pairs(30), 3, lambda line: None)
    assert found["pairs"] == 30
    assert math.isfinite(found["pearson"])
    with pytest.raises(InputError, match="too few for 16 folds"):
        sts.cross_validate(sts.Recipe(config, str(tiny)), graded_pairs(30), 16, lambda line: None)


def test_going_on_from_a_model_of_other_settings_is_refused(tiny: Path, tmp_path: Path) -> None:
    save(scorer(tiny, CrossConfig(hidden=8)), tmp_path / "m")
    with pytest.raises(InputError, match="not the requested"):
        sts.new_scorer(sts.Recipe(SMALL, init=tmp_path / "m"))
    config = dataclasses.replace(SMALL, hidden=8, siamese=False, max_length=128)
    assert (sts.new_scorer(sts.Recipe(config, init=tmp_path / "m")).probabilities(TEXTS) ==
            load(tmp_path / "m").probabilities(TEXTS)).all()  # fmt: skip


@pytest.mark.parametrize(("measure", "better", "worse"), [("pearson", 0.9, 0.1), ("mse", 0.1, 0.9)])
def test_the_kept_epoch_is_the_best_by_the_measure(measure: Any, better: float, worse: float) -> None:
    config = StsConfig(measure=measure)
    merits = [_merit({measure: value}, config) for value in (better, worse, math.nan)]
    assert merits == sorted(merits, reverse=True)
    assert len(set(merits)) == 3
