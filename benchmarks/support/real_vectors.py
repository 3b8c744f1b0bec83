"""Up to a million real vectors in 256 dimensions, computed once and cached in a file, and queries for them.

Each row is a passage of statements2articles: a sentence, or (to reach a million) two consecutive ones. Its vector
concatenates the mean of the passage's word vectors and the mean of its context's (five sentences), 128 dimensions
each. Neighbouring passages overlap, as chunks of documents do. Queries are the 1,913 test statements, each its own
context.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.support.common import shared_data
from benchmarks.support.direct import read
from benchmarks.support.meanvectors import mean_vectors
from benchmarks.support.passages import SHORTEST, statements
from indexes.arrays import normalised
from indexes.interface import Matrix
from linker.encoders.tokens import load_word_vectors

DIM = 256


def _sums(texts: Sequence[str]) -> Matrix:
    """Return the sum of each text's word vectors [n, 128]."""
    words = load_word_vectors(shared_data() / "word-vectors-en")
    matrix = np.vstack([words.matrix, np.zeros((1, words.matrix.shape[1]), dtype=np.float32)])
    out = np.empty((len(texts), matrix.shape[1]), dtype=np.float32)
    for start in range(0, len(texts), 5000):
        pieces = words.tokenizer.encode_batch(list(texts[start : start + 5000]), 1 << 20)
        # a weightless piece, so that no text is empty
        ids = np.concatenate([[*p, len(matrix) - 1] for p in pieces])
        starts = np.cumsum([0, *(len(p) + 1 for p in pieces[:-1])])
        out[start : start + len(pieces)] = np.add.reduceat(matrix[ids], starts)
    return out


def _windows(sums: Matrix, article: npt.NDArray[Any], before: int, after: int) -> Matrix:
    """Return, for each sentence, the sum of its neighbours' vectors within the same article."""
    total = np.vstack([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0, dtype=np.float64)])
    place = np.arange(len(sums))
    first, last = np.searchsorted(article, article), np.searchsorted(article, article, side="right")
    low, high = np.maximum(place - before, first), np.minimum(place + after + 1, last)
    window: Matrix = (total[high] - total[low]).astype(np.float32)
    return window


def prepare(folder: Path, rows: int) -> Path:
    """Write `rows` vectors (.npy) in random order, unless the file exists; return the file."""
    path = folder / f"real-{rows}.npy"
    if path.exists():
        return path
    found = [
        (number, sentence)
        for number, (_, text, _) in enumerate(read(shared_data() / "statements2articles" / "corpus.jsonl.gz"))
        for sentence in re.split(r"(?<=[.!?])\s+", text)
        if len(sentence) >= SHORTEST
    ]
    article = np.array([number for number, _ in found])
    single = _sums([sentence for _, sentence in found])
    around = _windows(single, article, 2, 2)
    neighbours = np.flatnonzero(article[1:] == article[:-1])
    passages = np.vstack([single, single[neighbours] + single[neighbours + 1]])
    both = np.hstack([normalised(passages), normalised(np.vstack([around, around[neighbours]]))])
    if len(both) < rows:
        raise SystemExit(f"only {len(both)} passages")
    picked = np.random.default_rng(0).choice(len(both), rows, replace=False)
    partial = path.with_suffix(".tmp.npy")
    np.save(partial, normalised(both[picked]))
    partial.rename(path)
    return path


def queries() -> Matrix:
    """Return the test statements' vectors [1913, 256], in random order."""
    vectors = mean_vectors(statements())
    return np.random.default_rng(0).permutation(normalised(np.hstack([vectors, vectors])))


def random_vectors(rows: int, seed: int) -> Matrix:
    """Return unit vectors without any structure: the hard case, unlike any text."""
    return normalised(np.random.default_rng(seed).standard_normal((rows, DIM), dtype=np.float32))
