"""One training loop: steps, dev figures, early stopping, checkpoints that resume exactly."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xxhash
from torch import Tensor, nn

from linker.encoders import folder as folders
from linker.encoders.text import TextEncoder
from linker.errors import LinkerError
from linker.files import write_atomically
from linker.progress import bar
from linker.training.batches import Batch, Batches, Pairs
from linker.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from linker.training.config import TrainingConfig
from linker.training.losses import info_nce, triplet_margin
from linker.training.miners import mine
from linker.training.retrieval import retrieval_figures

Ids = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Report:
    """How a training ended: steps, epochs begun, and the dev MRR of the model that was kept (−1 without dev)."""

    steps: int
    epochs: int
    best: float


def train(
    encoder: TextEncoder,
    pairs: Pairs,
    dev: Pairs | None,
    config: TrainingConfig,
    out: Path,
    *,
    resume: bool = False,
) -> Report:
    """Train an encoder in place and keep the best one in the model folder `out`, usable at every moment.

    "Best" is by MRR of the dev texts among the dev documents, the untrained model included; without dev, the last.
    `out`/training holds the checkpoint and metrics.jsonl. A training that was killed and resumed with the same data and
    settings ends with the same weights as one that was not. Raises LinkerError when the loss is no number.
    """
    trainer = _Trainer(encoder, pairs, dev, config, out)
    if resume and trainer.checkpoint.exists():
        trainer.restore()
    else:
        trainer.begin()
    return trainer.run()


class _Trainer:
    """The state of a training and its steps."""

    def __init__(
        self, encoder: TextEncoder, pairs: Pairs, dev: Pairs | None, config: TrainingConfig, out: Path
    ) -> None:
        self.encoder, self.config, self.dev, self.out = encoder, config, dev, out
        self.checkpoint, self.metrics = (
            out / "training/checkpoint.safetensors",
            out / "training/metrics.jsonl",
        )
        self.device = _device(config.device)
        encoder.module.to(self.device)
        tokenizer = encoder.tokenizer
        self.texts, self.documents = (
            tokenizer.encode_batch(x, config.max_length) for x in (pairs.texts, pairs.documents)
        )
        self.batches = Batches(pairs, config.batch_size, config.seed, config.hard_negatives)
        self.total = len(self.batches) * config.epochs
        self.optimizer = _optimizer(encoder.module, config)
        self.progress = Progress()
        self.setting = _setting(encoder, self.texts, self.documents, pairs, config)

    def begin(self) -> None:
        """Start anew: the untrained model is the first to be kept."""
        folders.save(self.encoder, self.out)
        self.metrics.parent.mkdir(exist_ok=True)
        self.checkpoint.unlink(missing_ok=True)
        self.metrics.unlink(missing_ok=True)
        torch.manual_seed(self.config.seed)
        self._judge()
        self._save()

    def restore(self) -> None:
        """Go on from the checkpoint; figures logged after it are dropped, for they will come again."""
        self.progress = load_checkpoint(self.checkpoint, self.encoder.module, self.optimizer, self.setting)
        lines = self.metrics.read_text(encoding="utf-8").splitlines() if self.metrics.exists() else []
        kept = [line for line in lines if _step_of(line) <= self.progress.step]
        write_atomically(self.metrics, "".join(f"{line}\n" for line in kept).encode())

    def run(self) -> Report:
        """Train until the last epoch or until dev gets no better; the encoder ends as the best one."""
        size = len(self.batches)
        with bar(self.total, "training", "steps") as shown:
            shown.update(self.progress.step)
            while not self.progress.finished:
                epoch, done = divmod(self.progress.step, size)
                for batch in self.batches.epoch(epoch)[done:]:
                    loss = self._step(batch)
                    shown.set_postfix_str(f"loss {loss:.3f}, dev MRR {self.progress.best:.3f}", refresh=False)
                    shown.update()
                    if self.progress.step % size == 0:
                        self._judge()
                    if (
                        self.progress.step % size == 0
                        or self.progress.step % self.config.checkpoint_steps == 0
                    ):
                        self._save()
        folders.load_weights(self.encoder, self.out)
        self.encoder.module.eval()
        return Report(self.progress.step, -(-self.progress.step // size), self.progress.best)

    def _step(self, batch: Batch) -> float:
        config, step = self.config, self.progress.step
        self.encoder.module.train()
        scale = learning_rate_scale(step, self.total, config.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = group["base_lr"] * scale
        with torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            loss = self._loss(batch, np.random.default_rng([config.seed, 1, step]))
        if not math.isfinite(loss.item()):
            raise LinkerError(f"the loss is {loss.item()} at step {step}: lower training.lr ({config.lr})")
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.encoder.module.parameters(), config.clip)
        self.optimizer.step()
        self.progress = dataclasses.replace(self.progress, step=step + 1)
        self._log(loss=round(loss.item(), 6), lr=config.lr * scale)
        return loss.item()

    def _loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        config = self.config
        texts = self.encoder.vectors(self._drop([self.texts[i] for i in batch.texts], rng))
        documents = self.encoder.vectors(self._drop([self.documents[i] for i in batch.documents], rng))
        positives = torch.from_numpy(batch.positives).to(self.device)
        if config.loss == "infonce":
            return info_nce(texts, documents, positives, config.temperature)
        anchors, linked, others = mine(texts, documents, positives, config.miner)
        return triplet_margin(texts[anchors], documents[linked], documents[others], config.margin)

    def _drop(self, ids: Ids, rng: np.random.Generator) -> Ids:
        rate = self.config.word_dropout
        if not rate:
            return ids
        return [[i for i, u in zip(text, rng.random(len(text)), strict=True) if u >= rate] for text in ids]

    def _judge(self) -> None:
        """Evaluate at the end of an epoch, keep the model if it is the best, and see whether to go on."""
        figures = {} if self.dev is None else retrieval_figures(self.encoder, self.dev)
        score = figures.get("mrr", -1.0)
        better = self.dev is None or score > self.progress.best
        if better:
            folders.save_weights(self.encoder, self.out)
        waited = 0 if better else self.progress.waited + 1
        finished = self.progress.step >= self.total or waited >= self.config.patience
        best = max(score, self.progress.best)
        self.progress = dataclasses.replace(self.progress, best=best, waited=waited, finished=finished)
        alphas: dict[str, list[float]] = getattr(self.encoder.module, "alphas", dict)()
        self._log(
            **{f"dev_{k}": round(v, 6) for k, v in figures.items()}, **({"alpha": alphas} if alphas else {})
        )

    def _save(self) -> None:
        save_checkpoint(self.checkpoint, self.encoder.module, self.optimizer, self.progress, self.setting)

    def _log(self, **figures: Any) -> None:
        epoch = self.progress.step / len(self.batches)
        line = {
            "step": self.progress.step,
            "epoch": round(epoch, 4),
            **figures,
            "time": round(time.time(), 3),
        }
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def learning_rate_scale(step: int, total: int, warmup: float) -> float:
    """Return a rise from 0 to 1 over the share `warmup` of all steps, then a straight fall to 0 at the end."""
    rise = warmup * total
    return (step + 1) / (rise + 1) if step < rise else (total - step) / max(total - rise, 1)


def _optimizer(module: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """AdamW with groups for α, the embedding and the rest; weight decay on the rest's matrices only."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        alpha, embedding = name.endswith("raw_alpha"), name.startswith("embedding.")
        rate = config.lr * (config.alpha_lr if alpha else config.embedding_lr if embedding else 1.0)
        decay = config.weight_decay if parameter.dim() > 1 and not embedding else 0.0
        groups.setdefault((rate, decay), []).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": p, "lr": rate, "base_lr": rate, "weight_decay": decay}
            for (rate, decay), p in groups.items()
        ]
    )


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    elif name == "cuda" and not torch.cuda.is_available():
        raise LinkerError("training.device is cuda and PyTorch sees no such device: set it to auto or cpu")
    return torch.device(name)


def _setting(encoder: TextEncoder, texts: Ids, documents: Ids, pairs: Pairs, config: TrainingConfig) -> str:
    """Describe all that the weights depend on, as JSON; how often to save does not matter."""
    data = json.dumps([texts, documents, list(pairs.links), [list(n) for n in pairs.negatives]]).encode()
    settings = dataclasses.asdict(config) | encoder.describe() | {"data": xxhash.xxh3_64_hexdigest(data)}
    return json.dumps({k: v for k, v in settings.items() if k != "checkpoint_steps"}, sort_keys=True)


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError):  # the last line of a killed run
        return 1 << 60
