"""Training of compact stars: whole documents as types, with the contrast from the first step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linker.training.compact_star import CompactStar, Types
from linker.training.losses import info_nce
from linker.training.schedule import learning_rate_scale

Ids = npt.NDArray[np.int32]
LENGTH = 2000


@dataclass(frozen=True)
class Recipe:
    """How a compact star learns. A rate of 0 freezes a part; `links` is the part of the links to learn from."""

    mean_only: bool = False  # whether the relay is the plain mean
    vectors: float = 3e-3  # learning rate of the word vectors
    alpha: float = 0.0  # learning rate of α before its sigmoid
    inputs: float = 0.0  # learning rate of idf, count and position in the keys
    temperature: float = 0.07
    dropout: float = 0.3
    links: str = "all"  # or "first", "second": halves by text
    stream: int = 8  # random stream: stages of training use different ones, so as not to share windows
    seed: int = 0


class Steps:
    """The optimizer of a model with its schedule over `total` steps."""

    def __init__(self, model: CompactStar, recipe: Recipe, total: int) -> None:
        self._optimizer, self._total, self._step = optimizer_of(model, recipe), total, 0
        self._rates = [group["lr"] for group in self._optimizer.param_groups]

    def step(self, loss: Tensor) -> None:
        """Take a step down the gradient of a loss, clipped to norm 1."""
        scale = learning_rate_scale(self._step, self._total, 0.1)
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * scale
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([p for g in self._optimizer.param_groups for p in g["params"]], 1.0)
        self._optimizer.step()
        self._step += 1


def optimizer_of(model: CompactStar, recipe: Recipe) -> torch.optim.Optimizer:
    """Set which parts of a model learn, and return its optimizer."""
    model.mean_only = recipe.mean_only
    relay = model.relay
    parts = [
        ([model.star.embedding.weight], recipe.vectors),
        ([*relay.query.parameters(), *relay.key.parameters(), *relay.value.parameters(), *relay.out.parameters()],
         0.0),
        ([relay.raw_alpha], recipe.alpha),
        ([model.inputs], recipe.inputs),
    ]  # fmt: skip
    for parameters, rate in parts:
        for parameter in parameters:
            parameter.requires_grad_(rate > 0)
    groups = [{"params": parameters, "lr": rate} for parameters, rate in parts if rate > 0]
    return torch.optim.AdamW(groups, weight_decay=0.0)


def dropped(texts: Sequence[Ids], rate: float, rng: np.random.Generator) -> Types:
    return Types.of([t[rng.random(len(t)) >= rate] if rate else t for t in texts])


def window(ids: Ids, rng: np.random.Generator) -> Ids:
    start = int(rng.integers(0, max(1, len(ids) - LENGTH + 1)))
    return ids[start : start + LENGTH]


def cloze_loss(
    model: CompactStar, documents: Sequence[Ids], recipe: Recipe, size: int, rng: np.random.Generator
) -> Tensor:
    """Return the loss of finding a document's remainder from a window of 40 of its tokens (Lee et al., 2019)."""
    windows, rests = [], []
    for row in rng.choice(len(documents), size, replace=False):
        ids = documents[row]
        if len(ids) < 2:
            continue
        length = min(40, len(ids) // 2)
        start = int(rng.integers(0, len(ids) - length + 1))
        windows.append(ids[start : start + length])
        rests.append(window(np.concatenate([ids[:start], ids[start + length :]]), rng))
    found = [model(dropped(part, recipe.dropout, rng)) for part in (windows, rests)]
    return info_nce(found[0], found[1], torch.eye(len(rests), dtype=torch.bool), recipe.temperature)


@torch.inference_mode()
def encode(model: CompactStar, texts: Sequence[Ids]) -> npt.NDArray[np.float32]:
    """Return vectors of texts, float32 [n, d]; similar lengths share a pass."""
    order = np.argsort([-len(t) for t in texts], kind="stable")
    found = np.zeros((len(texts), model.star.embedding.weight.shape[1]), dtype=np.float32)
    for start in range(0, len(order), 512):
        rows = order[start : start + 512]
        found[rows] = model(Types.of([texts[row] for row in rows])).numpy()
    return found
