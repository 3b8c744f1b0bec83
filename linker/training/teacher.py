"""Distillation: training a fast encoder to reproduce the cosines of a slower one."""

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
from linker.base.files import map_bytes, npy_array, write_atomically
from linker.base.progress import bar
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.training.batches import Pairs

BLOCK = 1024  # number of texts between two saves; a killed run resumes from the last save


@dataclass(frozen=True, slots=True)
class Teacher:
    """A teacher's vectors of texts [n, t] and documents [m, t], float32, L2-normalised, in the order of `Pairs`."""

    texts: npt.NDArray[np.float32]
    documents: npt.NDArray[np.float32]

    @property
    def fingerprint(self) -> str:
        """A hash of the vectors."""
        digest = xxhash.xxh3_64()
        for vectors in (self.texts, self.documents):
            digest.update(vectors.tobytes())
        return digest.hexdigest()

    def loss(
        self, texts: Tensor, documents: Tensor, rows: tuple[Int64Array, Int64Array], temperature: float
    ) -> Tensor:
        """Return the mean cross-entropy of the student's and the teacher's softmax over the batch's documents.

        The student's vectors `texts` [n, d] and `documents` [m, d] correspond to the teacher's `rows`, int64 [n] and
        [m]. Hinton, Vinyals & Dean (2015), with in-batch cosines as logits, so that the dimensions can differ.
        """
        teacher_texts, teacher_documents = (
            torch.from_numpy(vectors[part]).to(texts.device)
            for vectors, part in zip((self.texts, self.documents), rows, strict=True)
        )
        target = functional.softmax(teacher_texts @ teacher_documents.T / temperature, dim=-1)
        return functional.cross_entropy(texts @ documents.T / temperature, target)


def ask(name: str, pairs: Pairs, folder: Path) -> Teacher:
    """Encode all linked texts and documents with the encoder `name`, saving the vectors in `folder` as they come.

    Documents include hard negatives of linked texts. Raises InputError if there is no such encoder,
    MissingExtraError if it needs an extra.
    """
    encoder = load_encoder(name)
    folder.mkdir(parents=True, exist_ok=True)
    texts, documents = (sorted({link[side] for link in pairs.links}) for side in (0, 1))
    if pairs.negatives:
        documents = sorted({*documents, *(row for text in texts for row in pairs.negatives[text])})
    matrices = []
    for what, rows, source in (("texts", texts, pairs.texts), ("documents", documents, pairs.documents)):
        vectors = np.zeros((len(source), encoder.dim), dtype=np.float32)
        key = xxhash.xxh3_64_hexdigest(
            "\0".join([encoder.fingerprint, *(source[row] for row in rows)]).encode()
        )
        vectors[rows] = _encode(encoder, [source[row] for row in rows], folder / f"{what}-{key}")
        matrices.append(vectors)
    return Teacher(*matrices)


def _encode(encoder: Encoder, texts: Sequence[str], stem: Path) -> npt.NDArray[np.float32]:
    parts = []
    with bar(len(texts), "asking the teacher", "texts") as shown:
        for start in range(0, len(texts), BLOCK):
            path = stem.with_name(f"{stem.name}-{start}.npy")
            if not path.exists():
                buffer = io.BytesIO()
                np.save(buffer, encoder.encode(texts[start : start + BLOCK]), allow_pickle=False)
                write_atomically(path, buffer.getvalue())
            parts.append(npy_array(path, map_bytes(path)))
            shown.update(len(parts[-1]))
    return np.concatenate(parts)
