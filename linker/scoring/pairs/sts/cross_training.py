"""Training of the Cross-BERT-GRU: discriminative learning rates, warm-up, and selection of the best epoch on dev."""

import copy
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from indexes.dtypes import Float64Array
from linker.base.errors import InputError, LinkerError
from linker.base.progress import bar
from linker.evaluation.correlation import mse, pearson, spearman
from linker.scoring.pairs.data import TOP, Pair, golds, groups
from linker.scoring.pairs.sts.cross_config import Loss, StsConfig
from linker.scoring.pairs.sts.cross_encoder import CrossEncoder
from linker.scoring.pairs.sts.scorer import (
    BATCH,
    GRADES,
    PairScorer,
    argmax_value,
    expected_value,
    hard_labels,
    soft_labels,
)
from linker.scoring.pairs.translate import Translator, back_translate
from linker.training.schedule import learning_rate_scale, parameter_groups, scale_rates


@dataclass(frozen=True, slots=True)
class FitReport:
    """The result of training: epochs run, the epoch kept, and its dev figures (empty without dev pairs)."""

    epochs: int
    kept: int
    dev: dict[str, float]


def train(
    encoder: PairScorer,
    pairs: Sequence[Pair],
    dev: Sequence[Pair],
    config: StsConfig,
    log: Callable[[str], None] = lambda line: None,
) -> FitReport:
    """Train an encoder in place on graded pairs and keep the best epoch on dev; without dev pairs, the last one.

    Epoch 0, the untrained model, is a candidate: a siamese model then ranks by the cosine. `log` receives one JSON
    line per epoch. Raises LinkerError if the loss is not finite, or if `frozen_layers` exceeds the backbone's layers;
    InputError if a pair has no grade.
    """
    return _CrossTrainer(encoder, pairs, dev, config, log).run()


class _CrossTrainer:
    def __init__(
        self,
        encoder: PairScorer,
        pairs: Sequence[Pair],
        dev: Sequence[Pair],
        config: StsConfig,
        log: Callable[[str], None],
    ) -> None:
        self.encoder, self.pairs, self.dev, self.config, self.log = encoder, pairs, dev, config, log
        self.gold = np.array(golds(pairs), np.float64)
        self.rng = np.random.default_rng(config.seed)
        torch.manual_seed(config.seed)  # for dropout
        _freeze(encoder.module, config.frozen_layers)
        self.optimizer = torch.optim.AdamW(
            parameter_groups(
                encoder.module.named_parameters(),
                config.weight_decay,
                lambda name: config.lr if name.startswith(("bert.", "map.")) else config.head_lr,
            )
        )
        self.total = config.epochs * -(-len(pairs) // config.batch_size)
        self.step = 0

    def run(self) -> FitReport:
        """Train, leaving the encoder with the weights of the best epoch."""
        module, config = self.encoder.module, self.config
        if self.encoder.head.prior is not None:
            fit_prior(self.encoder, [p.texts for p in self.pairs], self.gold)
        best_epoch, best, state, waited = 0, -math.inf, None, 0
        best_figures: dict[str, float] = {}
        for epoch in range(config.epochs + 1):
            loss = self._epoch() if epoch else math.nan
            dev_figures = figures(self.dev, self.encoder) if self.dev else {}
            self.log(json.dumps({"epoch": epoch, "loss": round(loss, 5) if epoch else None, **dev_figures}))
            value = _merit(dev_figures, config) if self.dev else float(epoch)
            if value > best:
                best_epoch, best, best_figures, waited = epoch, value, dev_figures, 0
                state = copy.deepcopy(module.state_dict()) if self.dev else None
            else:
                waited += 1
            if config.patience and waited >= config.patience:
                break
        if state is not None:
            module.load_state_dict(state)
        module.requires_grad_(True).eval()
        return FitReport(epoch, best_epoch, best_figures)

    def _epoch(self) -> float:
        module, config, total = self.encoder.module, self.config, 0.0
        module.train()
        self._half(config.precision == "bfloat16")
        batches = _batches(self.pairs, config.batch_size, self.rng)
        with bar(len(batches), "training", "steps") as shown:
            for rows in batches:
                loss = self._loss(rows)
                if not math.isfinite(loss.item()):
                    raise LinkerError(
                        f"the loss is {loss.item()}: lower lr ({config.lr:g}) or head_lr ({config.head_lr:g})"
                    )
                self.optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(loss)
                torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
                scale_rates(
                    self.optimizer, learning_rate_scale(self.step, self.total, config.warmup, config.schedule)
                )
                self.optimizer.step()
                self.step += 1
                total += loss.item()
                shown.update()
        self._half(False)
        module.eval()
        return total / len(batches)

    def _half(self, wanted: bool) -> None:
        if isinstance(self.encoder, CrossEncoder):
            self.encoder.module.half_precision = wanted

    def _loss(self, rows: Sequence[int]) -> Tensor:
        turned = self.rng.random(len(rows)) < 0.5 if self.config.both_orders else [False] * len(rows)
        texts = [self.pairs[row].texts for row in rows]
        logits = self.encoder.logits([t[::-1] if turn else t for t, turn in zip(texts, turned, strict=True)])
        return loss_of(logits, self.gold[list(rows)], self.config.loss)


def loss_of(logits: Tensor, gold: Float64Array, loss: Loss) -> Tensor:
    """Return the loss, a scalar, of logits [B, 6] against grades, float64 [B].

    It is cross-entropy with the nearest grade, cross-entropy with the label split between two grades, the squared error
    of the expected grade, or the sum of the last two.
    """
    if loss == "cross-entropy":
        return functional.cross_entropy(logits, torch.from_numpy(hard_labels(gold)))
    parts = []
    if loss.startswith("soft"):
        parts.append(functional.cross_entropy(logits, torch.from_numpy(soft_labels(gold))))
    if loss.endswith("mse"):
        expected = torch.softmax(logits, dim=1) @ torch.arange(GRADES, dtype=logits.dtype)
        parts.append(functional.mse_loss(expected, torch.as_tensor(gold, dtype=logits.dtype)))
    return torch.stack(parts).sum()


def fit_prior(encoder: PairScorer, pairs: Sequence[tuple[str, str]], gold: Float64Array) -> None:
    """Set a siamese model's prior to the least-squares line from the sentences' cosines to the grades `gold` [n]."""
    cosines = encoder.cosines(pairs)
    design = np.stack([cosines, np.ones_like(cosines)], axis=1)
    (slope, offset), *_ = np.linalg.lstsq(design, gold, rcond=None)
    variance = max(float(np.var(gold - design @ [slope, offset])), 0.05)
    assert encoder.head.prior is not None
    with torch.no_grad():
        encoder.head.prior.copy_(torch.tensor([max(slope, 0.1), offset, -math.log(variance)]))


def figures(pairs: Sequence[Pair], scorer: PairScorer, batch_size: int = BATCH) -> dict[str, float]:
    """Return the figures of a scorer on graded pairs; see `figures_of`. Raises InputError if a pair has no grade."""
    probabilities = scorer.probabilities([p.texts for p in pairs], batch_size=batch_size)
    return figures_of(golds(pairs), probabilities)


def figures_of(gold: Sequence[float], probabilities: npt.ArrayLike) -> dict[str, float]:
    """Return Spearman (average ranks), Pearson and MSE of the predictions against `gold` [n] / 5, and the accuracy.

    Predictions are the expected grades and (suffix `_argmax`) the most probable grades of `probabilities` [n, 6]. The
    accuracy is the share of pairs whose most probable grade is the one nearest to their score.
    """
    similarities = np.asarray(gold, np.float64) / TOP
    result = {}
    for suffix, value in (("", expected_value), ("_argmax", argmax_value)):
        predicted = value(probabilities)
        for name, measure in (("spearman", spearman), ("pearson", pearson), ("mse", mse)):
            result[name + suffix] = round(measure(predicted, similarities), 6)
    right = np.argmax(probabilities, axis=1) == hard_labels(gold)
    return result | {"accuracy": round(float(right.mean()), 6)}


def augment(pairs: Sequence[Pair], translator: Translator, source: str, via: str) -> list[Pair]:
    """Return pairs with each sentence replaced by its back-translation, if usable, under the same label."""
    texts = [text for pair in pairs for text in pair.texts]
    back = back_translate(translator, texts, source, via)
    added = []
    for pair, first, second in zip(pairs, back[::2], back[1::2], strict=True):
        if first is not None or second is not None:
            added.append(Pair(f"{pair.id}+{via}", first or pair.first, second or pair.second, pair.gold))
    return added


def split_dev(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Hold out a random share of the pairs as dev, by item; return the rest and the dev pairs, both in order.

    No text or id of a dev pair is in the rest: a pair in several languages has one id, and a sentence may be in many
    pairs. Dev has at most the share, or less if the items do not fit it exactly. Raises InputError if none fits.
    """
    size, dev = round(share * len(pairs)), set[int]()
    items = groups(pairs)
    for number in np.random.default_rng([seed, 1]).permutation(len(items)).tolist():
        if len(dev) + len(items[number]) <= size:
            dev.update(items[number])
    if size and not dev:
        raise InputError(
            f"every item has more than {size} of the {len(pairs)} pairs (pairs that share a text or id are one item): "
            "give a file of dev pairs with `dev`"
        )
    rest = [p for row, p in enumerate(pairs) if row not in dev]
    return rest, [p for row, p in enumerate(pairs) if row in dev]


def _merit(figures: dict[str, float], config: StsConfig) -> float:
    value = figures[config.measure]
    if math.isnan(value):
        return -1e9
    return -value if config.measure == "mse" else value


def _batches(pairs: Sequence[Pair], size: int, rng: np.random.Generator) -> list[list[int]]:
    """Return an epoch's random batches of rows, with pairs of similar length in the same batch."""
    order = rng.permutation(len(pairs)).tolist()
    batches: list[list[int]] = []
    for start in range(0, len(order), 8 * size):
        near = sorted(order[start : start + 8 * size], key=lambda row: sum(map(len, pairs[row].texts)))
        batches.extend(near[i : i + size] for i in range(0, len(near), size))
    return [batches[i] for i in rng.permutation(len(batches))]


def _freeze(module: torch.nn.Module, layers: int) -> None:
    if not layers:
        return
    backbone: Any = getattr(module, "bert", None)
    stack = getattr(getattr(backbone, "encoder", None), "layer", ())
    if layers > len(stack):
        raise LinkerError(
            f"frozen_layers = {layers}, but the backbone has {len(stack)} layers that can be frozen"
        )
    for part in (backbone.embeddings, *stack[:layers]):
        part.requires_grad_(False)
