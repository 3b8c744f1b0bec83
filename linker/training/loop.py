"""The training loop: steps, evaluation on dev, early stopping, and checkpoints that resume exactly."""

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
from torch import Tensor

from linker.base.errors import LinkerError
from linker.base.files import write_atomically
from linker.base.progress import bar
from linker.encoders import folder as folders
from linker.encoders.attention import sparsity
from linker.encoders.text import TextEncoder
from linker.training.batches import Batch, Batches, Pairs
from linker.training.checkpoint import TrainingProgress, load_checkpoint, save_checkpoint
from linker.training.config import TrainingConfig
from linker.training.losses import info_nce, mine, multi_similarity, of_one_document, triplet_margin
from linker.training.optimizer import Optimizer
from linker.training.parallel import join
from linker.training.retrieval import Judge
from linker.training.schedule import learning_rate_scale
from linker.training.teacher import Teacher
from linker.training.vectors import WHOLE

Ids = Sequence[Sequence[int]]
SAMPLE = 32  # number of documents on which sparsity is measured


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a training run: steps, epochs begun, and the dev MRR of the saved model (−1 without a dev set)."""

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
    teacher: Teacher | None = None,
    resume: bool = False,
) -> Report:
    """Train an encoder in place and save the best model in the folder `out`, which is usable at any moment.

    The best model, possibly the untrained one, has the highest MRR of dev texts over dev documents; without dev, it
    is the last. `out`/training holds the checkpoint and metrics.jsonl. A training run that was killed and resumed
    with the same data and settings ends with the same weights as an uninterrupted one. Under torchrun, the processes
    share the work on each batch and each evaluation, and the first one writes. Raises LinkerError if the loss is not
    finite or `config.device` is missing, InputError if the folder or the checkpoint does not match.
    """
    trainer = _Trainer(encoder, pairs, dev, config, out, teacher)
    if resume and trainer.checkpoint.exists():
        trainer.restore()
    else:
        trainer.begin()
    return trainer.run()


class _Trainer:
    def __init__(
        self,
        encoder: TextEncoder,
        pairs: Pairs,
        dev: Pairs | None,
        config: TrainingConfig,
        out: Path,
        teacher: Teacher | None,
    ) -> None:
        self.encoder, self.config, self.out, self.teacher = encoder, config, out, teacher
        self.device = device_of(config.device)
        self.world = join(self.device)
        self.judge = None if dev is None else Judge(encoder, dev)
        self.checkpoint, self.metrics = (
            out / "training/checkpoint.safetensors",
            out / "training/metrics.jsonl",
        )
        encoder.module.to(self.device)
        self.world.share_weights(encoder.module)
        tokenizer = encoder.tokenizer
        longest = WHOLE if config.crop else config.max_length
        self.texts = tokenizer.encode_batch(pairs.texts, config.max_length)
        self.documents = tokenizer.encode_batch(pairs.documents, longest)
        self.long = [row for row, ids in enumerate(self.documents) if len(ids) > 1]
        self.sample = [ids[: config.max_length] for ids in self.documents[:SAMPLE]]
        self.batches = Batches(pairs, config.batch_size, config.seed, config.hard_negatives)
        self.total = len(self.batches) * config.epochs
        self.optimizer = Optimizer(encoder.module, config)
        self.progress = TrainingProgress()
        data = [self.texts, self.documents, list(pairs.links), [list(n) for n in pairs.negatives]]
        self.setting = _setting(encoder, [*data, *([teacher.fingerprint] if teacher else [])], config)

    def begin(self) -> None:
        """Start from the beginning and save the untrained model, which is the best so far."""
        if self.world.first:
            folders.save(self.encoder, self.out)
            self.metrics.parent.mkdir(exist_ok=True)
            self.checkpoint.unlink(missing_ok=True)
            self.metrics.unlink(missing_ok=True)
        torch.manual_seed(self.config.seed)
        self._judge()
        self._save()

    def restore(self) -> None:
        """Continue from the checkpoint, and drop figures logged after it, which will be logged again."""
        self.progress = load_checkpoint(self.checkpoint, self.encoder.module, self.optimizer, self.setting)
        lines = (
            self.metrics.read_text(encoding="utf-8", errors="replace").splitlines()
            if self.metrics.exists()
            else []
        )
        lines_before = [line for line in lines if _step_of(line) <= self.progress.step]
        if self.world.first:
            write_atomically(self.metrics, "".join(f"{line}\n" for line in lines_before).encode())

    def run(self) -> Report:
        """Train until the last epoch or until dev stops improving; the encoder then has the best weights."""
        size = len(self.batches)
        with bar(self.total if self.world.first else 0, "training", "steps") as meter:
            meter.update(self.progress.step)
            while not self.progress.finished:
                epoch, done = divmod(self.progress.step, size)
                for batch in self.batches.epoch(epoch)[done:]:
                    loss = self._step(batch)
                    meter.set_postfix_str(f"loss {loss:.3f}, dev MRR {self.progress.best:.3f}", refresh=False)
                    meter.update()
                    if self.progress.step % size == 0:
                        self._judge()
                    if (
                        self.progress.step % size == 0
                        or self.progress.step % self.config.checkpoint_steps == 0
                    ):
                        self._save()
        self.world.wait()
        folders.load_weights(self.encoder, self.out)
        self.encoder.module.eval()
        return Report(self.progress.step, -(-self.progress.step // size), self.progress.best)

    def _step(self, batch: Batch) -> float:
        config, step = self.config, self.progress.step
        self.encoder.module.train()
        scale = learning_rate_scale(step, self.total, config.warmup, config.schedule)
        self.optimizer.set_rate(scale)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            loss = self._loss(batch, np.random.default_rng([config.seed, 1, step]))
        if not math.isfinite(loss.item()):
            raise LinkerError(f"the loss is {loss.item()} at step {step}: lower training.lr ({config.lr})")
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        self.world.add_gradients(self.encoder.module)
        self.optimizer.step(config.clip)
        self.progress = dataclasses.replace(self.progress, step=step + 1)
        self._log(loss=round(loss.item(), 6), lr=config.lr * scale)
        return loss.item()

    def _loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        config = self.config
        texts = self._vectors(
            _without_some([self.texts[i] for i in batch.texts], self.config.word_dropout, rng)
        )
        cropped = [_window(self.documents[i], config.max_length, rng) for i in batch.documents]
        documents = self._vectors(_without_some(cropped, self.config.word_dropout, rng))
        positives = torch.from_numpy(batch.positives).to(self.device)
        if config.loss == "infonce":
            loss = info_nce(texts, documents, positives, config.temperature)
        else:
            loss = self._mined(texts, documents, positives)
        if config.cloze and self.long:
            loss = loss + self._cloze(rng)
        if self.teacher is None:
            return loss
        rows = (batch.texts, batch.documents)
        return loss + config.teacher_weight * self.teacher.loss(texts, documents, rows, config.temperature)

    def _mined(self, texts: Tensor, documents: Tensor, positives: Tensor) -> Tensor:
        """Return the loss of the pairs that the miner keeps.

        Danovitch's anchors are documents in equation 7; in his code, anchors and negatives are of both kinds.
        """
        config = self.config
        ours, theirs, negatives = texts, documents, ~positives
        if config.anchor == "document":
            ours, theirs, positives, negatives = documents, texts, positives.T, negatives.T
        elif config.anchor == "both":
            ours = theirs = torch.cat([texts, documents])
            positives, negatives = of_one_document(positives)
        anchors, linked, others = mine(ours, theirs, positives, negatives, config.miner)
        if config.loss == "triplet":
            return triplet_margin(ours[anchors], theirs[linked], theirs[others], config.margin)
        near, far = torch.zeros_like(positives), torch.zeros_like(positives)
        near[anchors, linked] = True
        far[anchors, others] = True
        return multi_similarity(ours @ theirs.T, near, far)

    def _cloze(self, rng: np.random.Generator) -> Tensor:
        """Return the loss of the inverse cloze task: find a document's rest from a window of it (Lee et al., 2019)."""
        config = self.config
        rows = rng.choice(self.long, min(config.cloze, len(self.long)), replace=False)
        texts, rests = [], []
        for ids in (self.documents[row] for row in rows):
            size = min(config.cloze_window, len(ids) // 2)
            start = int(rng.integers(0, len(ids) - size + 1))
            texts.append(ids[start : start + size])
            rests.append(_window([*ids[:start], *ids[start + size :]], config.max_length, rng))
        windows, others = (
            self._vectors(_without_some(part, self.config.word_dropout, rng)) for part in (texts, rests)
        )
        pairs = torch.eye(len(rows), dtype=torch.bool, device=self.device)
        return info_nce(windows, others, pairs, config.temperature)

    def _vectors(self, ids: Ids) -> Tensor:
        """Return the vectors of all `ids`, [n, d]: this process encodes its share and gathers the others'."""
        share = self.encoder.vectors([ids[row] for row in self.world.share(len(ids))])
        return self.world.gather(share, len(ids))

    def _judge(self) -> None:
        """Evaluate on dev, save the model if it is the best so far, and record whether training is finished."""
        figures = {} if self.judge is None else self.judge.figures(self.encoder, self.world)
        score = self.world.agree([figures.get("mrr", -1.0)])[0]
        better = self.judge is None or score > self.progress.best
        if better and self.world.first:
            folders.save_weights(self.encoder, self.out)
        waited = 0 if better else self.progress.waited + 1
        finished = self.progress.step >= self.total or waited >= self.config.patience
        best = max(score, self.progress.best)
        self.progress = dataclasses.replace(self.progress, best=best, waited=waited, finished=finished)
        alphas: dict[str, list[float]] = getattr(self.encoder.module, "alphas", dict)()
        heads = {"alpha": alphas, "sparsity": sparsity(self.encoder, self.sample)} if alphas else {}
        self._log(**{f"dev_{k}": round(v, 6) for k, v in figures.items()}, **heads)

    def _save(self) -> None:
        if self.world.first:
            save_checkpoint(self.checkpoint, self.encoder.module, self.optimizer, self.progress, self.setting)
        self.world.wait()

    def _log(self, **figures: Any) -> None:
        if not self.world.first:
            return
        epoch = self.progress.step / len(self.batches)
        line = {
            "step": self.progress.step,
            "epoch": round(epoch, 4),
            **figures,
            "time": round(time.time(), 3),
        }
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def device_of(name: str) -> torch.device:
    """Return the device named in `training.device`. Raises LinkerError if PyTorch does not find it."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    elif name == "cuda" and not torch.cuda.is_available():
        raise LinkerError("training.device is cuda, but PyTorch finds no such device: set it to auto or cpu")
    return torch.device(name)


def _without_some(ids: Ids, rate: float, rng: np.random.Generator) -> Ids:
    if not rate:
        return ids
    return [[i for i, u in zip(text, rng.random(len(text)), strict=True) if u >= rate] for text in ids]


def _window(ids: Sequence[int], size: int, rng: np.random.Generator) -> Sequence[int]:
    if len(ids) <= size:
        return ids
    start = int(rng.integers(0, len(ids) - size + 1))
    return ids[start : start + size]


def _setting(encoder: TextEncoder, data: list[Any], config: TrainingConfig) -> str:
    """Return everything that determines the weights, as JSON; the checkpoint interval is left out."""
    digest = xxhash.xxh3_64_hexdigest(json.dumps(data).encode())
    settings = dataclasses.asdict(config) | encoder.describe() | {"data": digest}
    return json.dumps({k: v for k, v in settings.items() if k != "checkpoint_steps"}, sort_keys=True)


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, RecursionError):  # the incomplete last line of a killed run
        return 1 << 60
