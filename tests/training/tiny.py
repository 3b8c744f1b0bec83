"""A training run of seconds: texts that share a unique word with their document; run as a script to be killed."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from linker.encoders.configs import PRESETS, StarConfig
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Vocabulary, WordTokenizer
from linker.training.batches import Pairs
from linker.training.config import TrainingConfig
from linker.training.loop import train

CONFIG = TrainingConfig(
    batch_size=8, epochs=6, lr=0.02, patience=10, word_dropout=0.1, max_length=12, checkpoint_steps=2,
    device="cpu",
)  # fmt: skip
STAR = StarConfig(dim=8, heads=2, head_dim=4, residual=True, max_weight=PRESETS["recommended"].max_weight)


def pairs(seed: int, size: int = 40) -> Pairs:
    """Return texts and documents of random words; a pair shares two of them."""
    rng = np.random.default_rng(seed)
    shared = rng.integers(0, 60, (size, 2))
    texts = [" ".join(f"w{w}" for w in [*own, *rng.integers(60, 90, 3)]) for own in shared]
    documents = [" ".join(f"w{w}" for w in [*rng.integers(60, 90, 8), *own]) for own in shared]
    return Pairs(texts, documents, [(i, i) for i in range(size)])


def encoder() -> TextEncoder:
    torch.manual_seed(0)
    return TextEncoder.new(STAR, WordTokenizer(Vocabulary.of(f"w{i}" for i in range(90))), max_length=20)


def run(out: Path, config: TrainingConfig = CONFIG) -> None:
    """Start or resume training; one thread, so that sums have a fixed order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train(encoder(), pairs(1), pairs(2), config, out, resume=True)
    finally:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    given = (option.removeprefix("--").partition("=") for option in sys.argv[2:])
    options: dict[str, Any] = {name: value or True for name, _, value in given}
    run(Path(sys.argv[1]), dataclasses.replace(CONFIG, **options))
