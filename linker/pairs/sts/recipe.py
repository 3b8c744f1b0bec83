"""Sentence similarity end to end: pairs to a trained scorer, predictions, figures, cross-validation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from linker.config import build
from linker.encoders.loading import load_encoder
from linker.errors import InputError
from linker.pairs.backbone import load_backbone
from linker.pairs.data import Pair, golds, read_pairs
from linker.pairs.sts.cross_config import PRESETS, StsConfig
from linker.pairs.sts.cross_encoder import CrossEncoder
from linker.pairs.sts.cross_training import Report, augmented, figures, figures_of, split_dev, train
from linker.pairs.sts.frozen import FrozenScorer
from linker.pairs.sts.scorer import PairScorer, argmax_value, expected_value
from linker.pairs.sts.scorer_folder import load, save
from linker.pairs.translate import load_translator
from linker.printable import json_text

__all__ = ["Recipe", "configure", "cross_validate", "figures", "load", "prediction_lines", "read_pairs", "save",
           "split_dev", "train_and_save"]  # fmt: skip

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is trained and how: settings, backbone or a model to go on from, and the translator of the augmentation."""

    config: StsConfig
    backbone: str = "minilm"
    init: Path | None = None
    translator: str | None = None
    language: str = "en"
    via: str = "fr"


def configure(preset: str, overrides: Sequence[str]) -> StsConfig:
    """Return a preset with "key=value" overrides. Raises ConfigError naming the key."""
    return build(StsConfig, dataclasses.asdict(PRESETS[preset]), overrides, f"the preset {preset}")


def new_scorer(recipe: Recipe) -> PairScorer:
    """Make the scorer to train. Raises InputError when backbone or model cannot be had, or is of another kind."""
    config = recipe.config
    if recipe.init:
        scorer = load(recipe.init)
        if isinstance(scorer, CrossEncoder) and scorer.config != config.model:
            raise InputError(
                f"{recipe.init} has other settings ({scorer.config}) than asked for ({config.model})"
            )
        return scorer
    torch.manual_seed(config.seed)
    if config.frozen:
        return FrozenScorer(recipe.backbone, load_encoder(recipe.backbone), config.dropout)
    return CrossEncoder.new(config.model, load_backbone(recipe.backbone))


def fit(recipe: Recipe, pairs: Sequence[Pair], dev: Sequence[Pair], log: Log) -> tuple[PairScorer, Report]:
    """Train a scorer on pairs and their back-translations, if any; the epoch that is best on dev is kept."""
    scorer = new_scorer(recipe)
    more: list[Pair] = []
    if recipe.translator:
        more = augmented(pairs, load_translator(recipe.translator), recipe.language, recipe.via)
        log(f"{len(more)} pairs added by back-translation through {recipe.via}")
    return scorer, train(scorer, [*pairs, *more], dev, recipe.config, log)


def train_and_save(recipe: Recipe, pairs: Sequence[Pair], dev: Sequence[Pair], out: Path, log: Log) -> Report:
    """Train a scorer and write its folder."""
    scorer, report = fit(recipe, pairs, dev, log)
    dev_line = ", ".join(f"{name} {value:.4f}" for name, value in report.dev.items()) or "none"
    notes = f"Trained on {len(pairs)} pairs; epoch {report.kept} of {report.epochs} kept. Dev ({len(dev)}): {dev_line}."
    save(scorer, out, notes)
    return report


def prediction_lines(scorer: PairScorer, pairs: Sequence[Pair], batch_size: int) -> Iterator[str]:
    """Yield a JSON line a pair: id, score, grade, probabilities."""
    found = scorer.probabilities([p.texts for p in pairs], batch_size=batch_size, progress=True)
    rows = zip(
        pairs, expected_value(found).tolist(), argmax_value(found).tolist(), found.tolist(), strict=True
    )
    for pair, score, grade, probabilities in rows:
        line = {"id": pair.id, "score": round(score, 6), "grade": grade}
        yield json_text(line | {"probabilities": [round(p, 6) for p in probabilities]}) + "\n"


def cross_validate(recipe: Recipe, pairs: Sequence[Pair], folds: int, log: Log) -> dict[str, Any]:
    """Return the figures of out-of-fold predictions; in each fold a tenth of its training pairs chooses the epoch.

    Raises InputError when there are fewer than two pairs a fold.
    """
    if len(pairs) < 2 * folds:
        raise InputError(f"{len(pairs)} pairs are too few for {folds} folds: lower --folds")
    fold = np.random.default_rng([recipe.config.seed, 2]).permutation(len(pairs)) % folds
    found = np.zeros((len(pairs), 6), dtype=np.float32)
    for number in range(folds):
        log(f"fold {number + 1} of {folds}")
        rest, dev = split_dev(
            [p for p, f in zip(pairs, fold, strict=True) if f != number], 0.1, recipe.config.seed
        )
        scorer, _ = fit(recipe, rest, dev, log)
        held = np.flatnonzero(fold == number)
        found[held] = scorer.probabilities([pairs[row].texts for row in held.tolist()])
    return {"pairs": len(pairs), **figures_of(golds(pairs), found)}
