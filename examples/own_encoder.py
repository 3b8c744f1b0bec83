"""Search with your own encoder: any object with `dim`, `fingerprint` and `encode`."""

import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from indexes.interface import Document
from indexes.store.records import EncoderRecord, Manifest
from indexes.writer import Writer
from linker import Engine


class Trigrams:
    """Count hashed character trigrams: tolerates misspellings and needs no model."""

    dim = 256
    # Change the fingerprint whenever the vectors change: an index refuses encoders with another one.
    fingerprint = "trigrams-256"

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return L2-normalised vectors: float32 [n, 256]."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            padded = f"  {text.lower()} "
            for start in range(len(padded) - 2):
                vectors[row, zlib.crc32(padded[start : start + 3].encode()) % self.dim] += 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


posts = [
    Document("p1", "Flodding in Valenica, streets under watr!!"),
    Document("p2", "New parliament elected in Portugal"),
    Document("p3", "My cat sleeps all day"),
]
encoder = Trigrams()
with tempfile.TemporaryDirectory() as folder:
    directory = Path(folder) / "posts.index"
    record = EncoderRecord("trigrams", encoder.fingerprint, encoder.dim)
    with Writer.create(directory, Manifest(vectors="flat", encoder=record)) as writer:
        writer.add(posts, encoder.encode([post.text for post in posts]))
        writer.commit()
    engine = Engine(directory, encoder=encoder)
    for mode in ("bm25", "dense", "hybrid"):
        hits = engine.search("flooding in Valencia: streets under water", k=2, mode=mode).hits[0]
        print(f"{mode:7}", *hits.ids)
