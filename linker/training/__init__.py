"""Training of Siamese encoders on links between texts and documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.training.config import TrainConfig, TrainingConfig
    from linker.training.loop import train
    from linker.training.run import build_encoder, read_pairs

__all__ = ["TrainConfig", "TrainingConfig", "build_encoder", "read_pairs", "train"]
__getattr__ = lazy(
    __name__,
    {
        "TrainConfig": "linker.training.config",
        "TrainingConfig": "linker.training.config",
        "build_encoder": "linker.training.run",
        "read_pairs": "linker.training.run",
        "train": "linker.training.loop",
    },
)
