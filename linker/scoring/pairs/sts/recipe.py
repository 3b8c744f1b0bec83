"""Sentence similarity end to end: training, predictions, figures and cross-validation."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from linker.base.config import build
from linker.base.errors import InputError
from linker.base.printable import json_text
from linker.encoders.loading import load_encoder
from linker.scoring.pairs.backbone import load_backbone
from linker.scoring.pairs.data import Pair, folds_of, golds, read_pairs
from linker.scoring.pairs.sts.cross_config import PRESETS, StsConfig
from linker.scoring.pairs.sts.cross_encoder import CrossEncoder
from linker.scoring.pairs.sts.cross_training import (
    FitReport,
    augment,
    figures,
    figures_of,
    split_dev,
    train,
)
from linker.scoring.pairs.sts.frozen import FrozenScorer
from linker.scoring.pairs.sts.mixed import MixedScorer
from linker.scoring.pairs.sts.scorer import PairScorer, argmax_value, expected_value
from linker.scoring.pairs.sts.scorer_folder import check_free, load, save
from linker.scoring.pairs.translate import load_translator

__all__ = ["Recipe", "configure", "cross_validate", "figures", "load", "prediction_lines", "read_pairs", "save",
           "split_dev", "train_and_save"]  # fmt: skip

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A training recipe: the settings, a backbone or a model to start from (`init`), and back-translation."""

    config: StsConfig
    backbone: str = "minilm"
    init: Path | None = None
    translator: str | None = None
    language: str = "en"
    via: str = "fr"


def configure(preset: str, overrides: Sequence[str]) -> StsConfig:
    """Return a preset with "key=value" overrides. Raises ConfigError if a key is unknown or a value is wrong."""
    return build(StsConfig, dataclasses.asdict(PRESETS[preset]), overrides, f"the preset {preset}")


def new_scorer(recipe: Recipe) -> PairScorer:
    """Return the scorer to train.

    Raises InputError if the backbone or model is not available, or the model does not have the recipe's settings.
    """
    config = recipe.config
    if recipe.init:
        scorer = load(recipe.init)
        if isinstance(scorer, CrossEncoder) and scorer.config != config.model:
            raise InputError(
                f"{recipe.init} has the settings {scorer.config}, not the requested {config.model}"
            )
        return scorer
    torch.manual_seed(config.seed)
    if config.mixed:
        return MixedScorer({name: load_encoder(name) for name in recipe.backbone.split(",")})
    if config.frozen:
        return FrozenScorer(recipe.backbone, load_encoder(recipe.backbone), config.dropout)
    return CrossEncoder.new(config.model, load_backbone(recipe.backbone))


def fit(recipe: Recipe, pairs: Sequence[Pair], dev: Sequence[Pair], log: Log) -> tuple[PairScorer, FitReport]:
    """Train a scorer on pairs and, with a translator, their back-translations; keep the best epoch on dev.

    Raises InputError as `new_scorer` does; LinkerError if the loss is not finite.
    """
    scorer = new_scorer(recipe)
    more: list[Pair] = []
    if recipe.translator:
        more = augment(pairs, load_translator(recipe.translator), recipe.language, recipe.via)
        log(f"{len(more)} pairs added by back-translation through {recipe.via}")
    every = [*pairs, *more]
    if not isinstance(scorer, MixedScorer):
        return scorer, train(scorer, every, dev, recipe.config, log)
    if recipe.config.choose == "dev" and not dev:
        raise InputError("choose=dev needs dev pairs: give them with `dev` or `dev_share`")
    chosen = scorer.fit(every, dev if recipe.config.choose == "dev" else (), recipe.config.seed)
    log(f"regression over {chosen}")
    return scorer, FitReport(1, 1, figures(dev, scorer) if dev else {})


def train_and_save(
    recipe: Recipe, pairs: Sequence[Pair], dev: Sequence[Pair], out: Path, log: Log
) -> FitReport:
    """Train a scorer, as `fit` does, and write its folder. Raises the InputErrors of `save` before training."""
    check_free(out)
    scorer, report = fit(recipe, pairs, dev, log)
    dev_line = ", ".join(f"{name} {value:.4f}" for name, value in report.dev.items()) or "none"
    notes = f"Trained on {len(pairs)} pairs; epoch {report.kept} of {report.epochs} kept. Dev ({len(dev)}): {dev_line}."
    save(scorer, out, notes)
    return report


def prediction_lines(scorer: PairScorer, pairs: Sequence[Pair], batch_size: int) -> Iterator[str]:
    """Yield one JSON line per pair: id, score, grade, probabilities."""
    distributions = scorer.probabilities([p.texts for p in pairs], batch_size=batch_size, progress=True)
    scores, grades = expected_value(distributions), argmax_value(distributions)
    rows = zip(pairs, scores.tolist(), grades.tolist(), distributions.tolist(), strict=True)
    for pair, score, grade, probabilities in rows:
        line = {"id": pair.id, "score": round(score, 6), "grade": grade}
        yield json_text(line | {"probabilities": [round(p, 6) for p in probabilities]}) + "\n"


def cross_validate(recipe: Recipe, pairs: Sequence[Pair], folds: int, log: Log) -> dict[str, Any]:
    """Return the figures of out-of-fold predictions; a tenth of each fold's training pairs selects the epoch.

    Pairs that share a text or an id are in the same fold. Raises InputError if there are fewer than two pairs per
    fold.
    """
    if len(pairs) < 2 * folds:
        raise InputError(f"{len(pairs)} pairs are too few for {folds} folds: lower `folds`")
    fold = folds_of(pairs, folds, recipe.config.seed)
    if fold.max() + 1 < folds:
        raise InputError(
            f"there are fewer items than {folds} folds: pairs that share a text or an id are one item"
        )
    probabilities = np.zeros((len(pairs), 6), dtype=np.float32)
    for number in range(folds):
        log(f"fold {number + 1} of {folds}")
        rest, dev = split_dev(
            [p for p, f in zip(pairs, fold, strict=True) if f != number], 0.1, recipe.config.seed
        )
        scorer, _ = fit(recipe, rest, dev, log)
        held_out = np.flatnonzero(fold == number)
        probabilities[held_out] = scorer.probabilities([pairs[row].texts for row in held_out.tolist()])
    return {"pairs": len(pairs), **figures_of(golds(pairs), probabilities)}
