"""Hits of judged queries in the shared data, featurised for P(link): BM25 alone, and with mean word vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.common import kept
from benchmarks.support.meanvectors import mean_vectors
from indexes.interface import Document, Matrix
from indexes.store.records import EncoderRecord, Manifest
from indexes.writer import Writer
from linker.engine.engine import Engine
from linker.scoring.probability.features import Describer, names
from linker.scoring.probability.fitting import Hitlist, hitlist

SETS = ("statements2articles", "tweets2claims", "bbc-news", "descriptions")
BATCH = 4096


class MeanVectors:
    """The encoder of `mean_vectors`."""

    dim, fingerprint = 128, "mean-word-vectors".ljust(64, "0")

    def encode(self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False) -> Matrix:
        """Return the vectors of texts, float32 [n, 128]."""
        return mean_vectors(texts)


def open_index(name: str, work: Path, *, vectors: bool) -> Engine:
    """Return the index of a set, which is built in `work` if missing."""
    directory = work / f"{name}-{'vectors' if vectors else 'bm25'}"
    if not vectors:
        rank_data.make_index(name, directory, positions=False)
        return Engine(directory)
    encoder = MeanVectors()
    if not (directory / "manifest.json").exists():
        text = open_index(name, work, vectors=False).collection
        record = EncoderRecord("mean word vectors", encoder.fingerprint, encoder.dim)
        with Writer.create(directory, Manifest("flat", encoder=record)) as writer:
            for start in range(0, len(text.rows), BATCH):
                ids = text.rows.ids[start : start + BATCH]
                batch: list[Document] = [text.document(id_) for id_ in ids]
                writer.add(batch, encoder.encode([d.full_text for d in batch]))
            writer.commit()
    return Engine(directory, encoder=encoder)


def hits_of(name: str, work: Path, *, vectors: bool) -> dict[str, Hitlist]:
    """Return the hits of each split's queries; cached in `work`."""
    links = rank_data.links(name)

    def made() -> dict[str, Any]:
        engine = open_index(name, work, vectors=vectors)
        describer = Describer(engine.collection, engine.embed if vectors else None)
        parts: dict[str, Any] = {}
        for split, judged in links.items():
            hits = hitlist(engine.collection, describer, engine.search, judged.queries, judged.qrels)
            parts |= {f"{split}.{key}": value for key, value in vars(hits).items()}
        return parts

    stored = kept(work / f"{name}-{'vectors' if vectors else 'bm25'}.npz", made)
    keys = ("rows", "features", "relevant", "judged")
    found = {split: Hitlist(*(stored[f"{split}.{key}"] for key in keys)) for split in links}
    assert all(hits.features.shape[2] == len(names(vectors)) for hits in found.values())
    return found


def joined(parts: Sequence[Hitlist]) -> Hitlist:
    """Return the queries of several splits as one list."""
    keys = ("rows", "features", "relevant", "judged")
    return Hitlist(*(np.concatenate([getattr(part, key) for part in parts]) for key in keys))
