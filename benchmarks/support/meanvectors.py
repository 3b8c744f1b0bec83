"""An encoder without a neural network, for benchmarks: the normalised mean of static word-piece vectors."""

import functools
from collections.abc import Sequence

import numpy as np

from benchmarks.support.common import shared_data
from indexes.arrays import normalised
from indexes.interface import Matrix
from linker.encoders.tokens import WordVectors, load_word_vectors

BLOCK, LONGEST = 5000, 1 << 20  # texts per block, pieces per text (in effect, all)


@functools.cache
def _pieces() -> WordVectors:
    return load_word_vectors(shared_data() / "word-vectors-en")


def mean_vectors(texts: Sequence[str]) -> Matrix:
    """Return float32 [n, 128]: each text's normalised mean of piece vectors; zeros if it has no pieces."""
    words = _pieces()
    out = np.zeros((len(texts), words.matrix.shape[1]), dtype=np.float32)
    for start in range(0, len(texts), BLOCK):
        block = words.tokenizer.encode_batch(texts[start : start + BLOCK], LONGEST)
        for row, ids in enumerate(block, start):
            if ids:
                out[row] = words.matrix[ids].mean(axis=0)
    return normalised(out)
