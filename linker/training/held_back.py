"""Trains a star's key inputs on links that its word vectors have not seen.

Word vectors memorise the links from which they learned, so attention has nothing left to learn from these links. Here,
the vectors first learn from part of the links; the weights of idf, count and first position in the relay's keys, and α,
learn from the held-back links. Both are then used in a star whose vectors learn from all links: no part was trained on
its own answers (docs/attention.md).
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from indexes.dtypes import Float32Array
from linker.base.errors import ConfigError
from linker.base.progress import bar
from linker.encoders.configs import StarConfig
from linker.encoders.star import StarTransformer
from linker.encoders.text import TextEncoder
from linker.training.batches import Batch, Batches, Pairs
from linker.training.compact_star import CompactStar, Types
from linker.training.config import TrainConfig, TrainingConfig
from linker.training.losses import info_nce
from linker.training.schedule import learning_rate_scale, parameter_groups, scale_rates

LENGTH = 2000  # tokens read per document, starting at a random position
INPUTS_RATE, ALPHA_RATE = 1e-2, 5e-3
TEMPERATURE, DROPOUT, WARMUP = 0.07, 0.3, 0.1
# Options for which the relay over distinct tokens matches the star, in addition to `contrast`, which must be a number.
NEEDED = {"key_inputs": True, "layers": 1, "residual": True, "layer_norm": False, "leaky_relu": False,
          "max_weight": 0.0, "score": "dot", "relay_key": True}  # fmt: skip
Ids = npt.NDArray[np.int32]


def check(config: TrainConfig) -> None:
    """Raise ConfigError if `training.held_back` is set and the other settings do not allow it."""
    if not config.training.held_back:
        return
    model = config.encoder.model
    if not isinstance(model, StarConfig) or model.contrast is None:
        raise ConfigError(
            "training.held_back needs a star with contrast: choose encoder.preset = 'recommended'"
        )
    for key, value in NEEDED.items():
        if getattr(model, key) != value:
            raise ConfigError(f"training.held_back needs encoder.{key} = {str(value).lower()}")
    if not config.training.mean_epochs:
        raise ConfigError("training.held_back needs training.mean_epochs: the word vectors learn first")


def halves(pairs: Pairs, share: float, seed: int) -> tuple[Pairs, Pairs]:
    """Return the pairs to learn vectors from, and those of the held-back `share`. Raises ConfigError."""
    texts = sorted({text for text, _ in pairs.links})
    held = set(np.random.default_rng(seed).permutation(texts)[: round(share * len(texts))].tolist())
    parts = [[link for link in pairs.links if (link[0] in held) == is_held] for is_held in (False, True)]
    if not all(parts):
        raise ConfigError(
            f"training.held_back = {share} of {len(texts)} linked texts leaves a part without links"
        )
    return dataclasses.replace(pairs, links=parts[0]), dataclasses.replace(pairs, links=parts[1])


def learn(encoder: TextEncoder, vectors: Float32Array, pairs: Pairs, config: TrainingConfig) -> None:
    """Set the inputs of an encoder's keys, and α, from `pairs`, whose links the word `vectors` have not seen.

    `encoder` is a star that `check` allows, with the idf of its tokens set; its own vectors are left unchanged.
    `vectors` are float32 [tokens, dim]. The same data and seed give the same weights.
    """
    star = encoder.module
    assert isinstance(star, StarTransformer) and star.key_inputs is not None
    assert isinstance(encoder.config, StarConfig)
    model = CompactStar(vectors, encoder.config, star.key_inputs.idf.numpy(), config.seed)
    for parameter in model.parameters():
        parameter.requires_grad_(parameter is model.inputs or parameter is model.relay.raw_alpha)
    texts, documents = (
        [np.array(ids, dtype=np.int32) for ids in encoder.tokenizer.encode_batch(part, encoder.max_length)]
        for part in (pairs.texts, pairs.documents)
    )
    # smaller batches for a small corpus, so that there are enough steps
    size = min(512, max(32, len(pairs.links) // 16))
    batches = Batches(pairs, size, config.seed)
    steps = [batch for epoch in range(config.mean_epochs) for batch in batches.epoch(epoch)]
    cloze = _Cloze(documents, min(config.cloze, 2 * size), config.cloze_window)
    torch.manual_seed(config.seed)
    _descend(model, steps, lambda batch, rng: _loss(model, texts, documents, batch, rng) + cloze.loss(model, rng),
             config.seed)  # fmt: skip
    with torch.no_grad():
        star.key_inputs.weight.copy_(model.inputs)
        star.get_parameter("layers.0.relay.raw_alpha").copy_(model.relay.raw_alpha)


def _descend(
    model: CompactStar,
    steps: Sequence[Batch],
    loss_of: Callable[[Batch, np.random.Generator], Tensor],
    seed: int,
) -> None:
    learned = [("inputs", model.inputs), ("alpha", model.relay.raw_alpha)]
    rates = {"inputs": INPUTS_RATE, "alpha": ALPHA_RATE}
    optimizer = torch.optim.AdamW(parameter_groups(learned, 0.0, rates.__getitem__, lambda name: False))
    with bar(len(steps), "key inputs", "steps") as shown:
        for number, batch in enumerate(steps):
            scale_rates(optimizer, learning_rate_scale(number, len(steps), WARMUP))
            optimizer.zero_grad(set_to_none=True)
            # A separate random stream, since the vectors have already seen the windows of their own training.
            loss = loss_of(batch, np.random.default_rng([seed, 2, number]))
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_([parameter for _, parameter in learned], 1.0)
            optimizer.step()
            shown.update()


def _loss(
    model: CompactStar, texts: Sequence[Ids], documents: Sequence[Ids], batch: Batch, rng: np.random.Generator
) -> Tensor:
    queries = model(_types((texts[row] for row in batch.texts), rng))
    targets = model(_types((documents[row] for row in batch.documents), rng))
    return info_nce(queries, targets, torch.from_numpy(batch.positives), TEMPERATURE)


class _Cloze:
    """The inverse cloze task: a window of each of `size` documents must find its rest (Lee et al., 2019)."""

    def __init__(self, documents: Sequence[Ids], size: int, window: int) -> None:
        self._documents = [ids for ids in documents if len(ids) > 1]
        self._size, self._window = min(size, len(self._documents)), window

    def loss(self, model: CompactStar, rng: np.random.Generator) -> Any:
        if not self._size:
            return 0.0
        windows, rests = [], []
        for row in rng.choice(len(self._documents), self._size, replace=False):
            ids = self._documents[row]
            length = min(self._window, len(ids) // 2)
            start = int(rng.integers(0, len(ids) - length + 1))
            windows.append(ids[start : start + length])
            rests.append(np.concatenate([ids[:start], ids[start + length :]]))
        queries, targets = (model(_types(iter(part), rng)) for part in (windows, rests))
        return info_nce(queries, targets, torch.eye(self._size, dtype=torch.bool), TEMPERATURE)


def _types(texts: Iterator[Ids], rng: np.random.Generator) -> Types:
    """Return a random window of LENGTH tokens of each text, with a share of the tokens dropped."""
    read = []
    for ids in texts:
        start = int(rng.integers(0, max(1, len(ids) - LENGTH + 1)))
        here = ids[start : start + LENGTH]
        read.append(here[rng.random(len(here)) >= DROPOUT])
    return Types.of(read)
