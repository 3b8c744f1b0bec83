"""The data of the index benchmarks: articles of statements2articles, their sentences with vectors, and statements."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.common import shared_data
from benchmarks.support.direct import read
from benchmarks.support.harness import WORK
from benchmarks.support.meanvectors import mean_vectors
from indexes.interface import Matrix

SEED, SHORTEST = 0, 40
# The options of benchmarks on this data.
OPTIONS: dict[str, Any] = {
    "seed": SEED,
    "work": WORK,
    "sentences": 200_000,
    "graph": (40_000, "sentences that the HNSW graph takes"),
    "only": ("", "only the cases whose name holds this; nothing is recorded"),
}


@dataclass(frozen=True)
class Data:
    """Files: articles, sentences and their vectors (.npy, row by row), a few documents of each for warm-up."""

    articles: Path
    sentences: Path
    vectors: Path
    few_articles: Path
    few_sentences: Path


def prepare(folder: Path, sentences: int) -> Data:
    """Write the files that `folder` lacks: sentences drawn at random, their mean word vectors, small files."""
    source = shared_data() / "statements2articles" / "corpus.jsonl.gz"
    names = ("sentences.jsonl", "vectors.npy", "few_articles.jsonl", "few_sentences.jsonl")
    data = Data(source, *(folder / f"{sentences}-{name}" for name in names))
    if data.few_sentences.exists():
        return data
    articles = [(id_, text) for id_, text, _ in read(source)]
    _write(data.few_articles, articles[:50])
    candidates = [
        (f"{id_}-{n}", sentence)
        for id_, text in articles
        for n, sentence in enumerate(re.split(r"(?<=[.!?])\s+", text))
        if len(sentence) >= SHORTEST
    ]
    picked = np.sort(np.random.default_rng(SEED).choice(len(candidates), sentences, replace=False))
    chosen = [candidates[i] for i in picked]
    _write(data.sentences, chosen)
    np.save(data.vectors, mean_vectors([text for _, text in chosen]))
    _write(data.few_sentences, chosen[:50])
    return data


def first(path: Path, lines: int) -> Path:
    """Return a file with the first lines of another, next to it."""
    target = path.with_name(f"{path.stem}-{lines}.jsonl")
    if not target.exists():
        with path.open() as source:
            target.write_text("".join(line for line, _ in zip(source, range(lines), strict=False)))
    return target


def _write(path: Path, documents: Sequence[tuple[str, str]]) -> None:
    path.write_text("".join(json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in documents))


def statements() -> list[str]:
    """Return the texts of the test queries."""
    return [query.text for query in rank_data.links("statements2articles")["test"].queries]


class Precomputed:
    """An encoder that serves precomputed vectors: in row order to a build, looked up by text for queries."""

    fingerprint = "precomputed"

    def __init__(self, vectors: Matrix, texts: Sequence[str] | None = None) -> None:
        self._vectors, self._next = vectors, 0
        self._row = None if texts is None else {text: row for row, text in enumerate(texts)}

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return int(self._vectors.shape[1])

    def encode(self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False) -> Matrix:
        """Return the vectors of the next rows, or of these texts."""
        if self._row is not None:
            return self._vectors[[self._row[text] for text in texts]]
        start, self._next = self._next, self._next + len(texts)
        return self._vectors[start : self._next]
