"""Distillation: a slower encoder's cosines as the aim of a faster one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import xxhash
from torch import Tensor
from torch.nn import functional

from indexes.dtypes import Int64Array
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.files import write_atomically
from linker.progress import bar
from linker.training.batches import Pairs

BLOCK = 1024  # texts between two saves: a killed run goes on from there


@dataclass(frozen=True, slots=True)
class Teacher:
    """A teacher's vectors of texts [n, t] and documents [m, t], float32, normalised; rows as in Pairs."""

    texts: npt.NDArray[np.float32]
    documents: npt.NDArray[np.float32]

    @property
    def fingerprint(self) -> str:
        """Hash of the vectors."""
        digest = xxhash.xxh3_64()
        for vectors in (self.texts, self.documents):
            digest.update(vectors.tobytes())
        return digest.hexdigest()

    def loss(
        self, texts: Tensor, documents: Tensor, rows: tuple[Int64Array, Int64Array], temperature: float
    ) -> Tensor:
        """Return the mean over texts of the cross-entropy of the two softmaxes over the batch's documents.

        The student's vectors [n, d], [m, d] are those of the teacher's `rows`. Hinton, Vinyals & Dean (2015) with
        in-batch cosines as logits: dimensions need not agree.
        """
        own, other = (
            torch.from_numpy(vectors[part]).to(texts.device)
            for vectors, part in zip((self.texts, self.documents), rows, strict=True)
        )
        aim = functional.softmax(own @ other.T / temperature, dim=-1)
        return functional.cross_entropy(texts @ documents.T / temperature, aim)


def ask(name: str, pairs: Pairs, folder: Path) -> Teacher:
    """Encode all linked texts and documents by the encoder `name`; vectors are kept in `folder` as they come.

    Raises LinkerError when there is no such encoder.
    """
    encoder = load_encoder(name)
    folder.mkdir(parents=True, exist_ok=True)
    texts, documents = (sorted({link[side] for link in pairs.links}) for side in (0, 1))
    if pairs.negatives:
        documents = sorted({*documents, *(row for text in texts for row in pairs.negatives[text])})
    found = []
    for what, rows, source in (("texts", texts, pairs.texts), ("documents", documents, pairs.documents)):
        vectors = np.zeros((len(source), encoder.dim), dtype=np.float32)
        key = xxhash.xxh3_64_hexdigest(
            "\0".join([encoder.fingerprint, *(source[row] for row in rows)]).encode()
        )
        vectors[rows] = _encode(encoder, [source[row] for row in rows], folder / f"{what}-{key}")
        found.append(vectors)
    return Teacher(*found)


def _encode(encoder: Encoder, texts: Sequence[str], stem: Path) -> npt.NDArray[np.float32]:
    parts = []
    with bar(len(texts), "asking the teacher", "texts") as shown:
        for start in range(0, len(texts), BLOCK):
            path = stem.with_name(f"{stem.name}-{start}.npy")
            if not path.exists():
                buffer = io.BytesIO()
                np.save(buffer, encoder.encode(texts[start : start + BLOCK]), allow_pickle=False)
                write_atomically(path, buffer.getvalue())
            parts.append(np.load(path, allow_pickle=False))
            shown.update(len(parts[-1]))
    return np.concatenate(parts)
