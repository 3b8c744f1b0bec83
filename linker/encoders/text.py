"""An encoder made of a model and its tokenizer."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from linker.base.errors import InputError
from linker.base.progress import bar
from linker.encoders.bag import BagOfVectors
from linker.encoders.batches import by_length, filled
from linker.encoders.cnn import TextCnn
from linker.encoders.configs import ModelConfig, StarConfig, kind_of
from linker.encoders.described import describe, hashed_first
from linker.encoders.gru import Gru
from linker.encoders.interface import Precision
from linker.encoders.star import StarTransformer
from linker.encoders.tokens import Tokenizer
from linker.encoders.weights import hash_state

# The module of each kind, built from (configuration, tokens): it maps ids [B, L] and a mask [B, L] to vectors [B, d],
# and has an `embedding`.
MODELS: dict[str, Callable[[Any, int], nn.Module]] = {
    "star": StarTransformer, "bag": BagOfVectors, "cnn": TextCnn, "gru": Gru, "bigru": Gru,
}  # fmt: skip


@dataclass
class TextEncoder:
    """An Encoder made of a tokenizer and a module; texts are truncated to `max_length` tokens.

    `precision` is the precision of the matrix products in `encode`. It is not part of the fingerprint: a text's
    vectors in both precisions have a cosine above .999, so an index and its queries may differ in precision.
    """

    config: ModelConfig
    tokenizer: Tokenizer
    module: nn.Module
    max_length: int = 512
    precision: Precision = "float32"

    @classmethod
    def new(cls, config: ModelConfig, tokenizer: Tokenizer, max_length: int = 512) -> TextEncoder:
        """Return a model with random weights, which `torch.manual_seed` determines."""
        return cls(config, tokenizer, MODELS[kind_of(config)](config, tokenizer.size), max_length)

    @property
    def kind(self) -> str:
        """The model's name in `MODELS`."""
        return kind_of(self.config)

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self.config.dim if isinstance(self.config, StarConfig) else self.config.output

    @property
    def fingerprint(self) -> str:
        """Hash of the weights, the configuration and the vocabulary."""
        start = hashed_first(self.config, self.max_length, self.tokenizer)
        digest = hash_state(self.module.state_dict(), start)
        return f"{self.kind}-{digest}"

    def describe(self) -> dict[str, Any]:
        """Return the model's part of config.json."""
        return describe(self.config, self.max_length)

    def to_gpu(self) -> None:
        """Move the module to the GPU that PyTorch finds, if any; `encode` runs there from then on."""
        if torch.cuda.is_available():
            self.module.to("cuda")

    def compile(self) -> None:
        """Compile the module at its first call, for any length. Raises InputError without a C++ compiler."""
        compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
        if next(self.module.parameters()).device.type == "cpu" and not shutil.which(compiler):
            raise InputError(
                f"compiling a model needs a C++ compiler, but there is no {compiler}: install one, name another in the "
                "environment variable CXX, or continue without compiling"
            )
        self.module.compile(dynamic=True)

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, dim], L2-normalised, in the order of `texts`; finite for an empty text."""
        ids = self.tokenizer.encode_batch(texts, self.max_length)
        return self.encode_ids(ids, batch_size=batch_size, progress=progress)

    def encode_ids(
        self, ids: Sequence[Sequence[int]], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return the vectors of texts given as token ids, float32 [n, dim], normalised, in order."""
        vectors = np.zeros((len(ids), self.dim), dtype=np.float32)
        was_training = self.module.training
        self.module.eval()
        device = next(self.module.parameters()).device.type
        try:
            with (
                torch.inference_mode(),
                torch.autocast(device, torch.bfloat16, enabled=self.precision == "bfloat16"),
                bar(len(ids) if progress else 0, "encoding", "texts") as shown,
            ):
                for rows in by_length(ids, batch_size):
                    vectors[rows] = self.vectors([ids[row] for row in rows]).float().cpu().numpy()
                    shown.update(len(rows))
        finally:
            self.module.train(was_training)
        return vectors

    def vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Return L2-normalised vectors, float32 [n, dim], on the module's device, with gradients, for training."""
        device = next(self.module.parameters()).device
        vectors: Tensor = self.module(*(x.to(device) for x in padded(ids)))
        return functional.normalize(vectors.float(), dim=-1)


def padded(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return the ids padded with PAD, int64 [n, longest], and their mask, bool [n, longest], True at a token."""
    values, mask = filled(ids)
    return torch.from_numpy(values), torch.from_numpy(mask)
