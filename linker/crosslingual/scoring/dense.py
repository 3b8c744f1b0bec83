"""Pages as dense vectors: encoded in chunks, mean-pooled, and compared by cosine."""

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from indexes.arrays import normalised
from indexes.dtypes import Float32Array
from linker.encoders.interface import Encoder

CHUNK = 1000  # Latin letters, about 250 tokens
WIDE = 4  # letters that a Chinese, Japanese or Korean character counts as
GROUP = 64  # pages encoded at a time
EXACT = 3000  # maximum number of linked pages whose full Gram matrix is decomposed


def encode_pages(
    encoder: Encoder, texts: Sequence[str], advance: Callable[[int], object] = lambda count: None
) -> Float32Array:
    """Return the means of the pages' chunk vectors: float32 [n, dim], L2-normalised; zeros for an empty page."""
    vectors = np.zeros((len(texts), encoder.dim), np.float32)
    for begin in range(0, len(texts), GROUP):
        parts = [chunks(text) for text in texts[begin : begin + GROUP]]
        flat = [chunk for part in parts for chunk in part]
        if flat:
            owner = np.repeat(np.arange(begin, begin + len(parts)), [len(part) for part in parts])
            np.add.at(vectors, owner, encoder.encode(flat))
        advance(len(parts))
    return normalised(vectors)


def chunks(text: str, size: int = CHUNK) -> list[str]:
    """Return the text in chunks of at most `size` letters, split at whitespace; a wide character counts as four."""
    return pack((piece for word in text.split() for piece in _pieces(word, size)), size)


def pack(pieces: Iterable[str], longest: int, shortest: float = math.inf) -> list[str]:
    """Join pieces with spaces into texts of up to `longest` letters; a text is complete beyond `shortest` letters."""
    completed: list[str] = []
    current: list[str] = []
    used = 0
    for piece in pieces:
        width = letter_count(piece)
        if current and (used + width > longest or used > shortest):
            completed.append(" ".join(current))
            current, used = [], 0
        current.append(piece)
        used += width + 1
    return [*completed, " ".join(current)] if current else completed


def letter_count(text: str) -> int:
    """Return the number of letters in a text; a Chinese, Japanese or Korean character counts as four."""
    if text.isascii():
        return len(text)
    return sum(WIDE if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pieces(word: str, size: int) -> list[str]:
    step = size if word.isascii() else max(1, size // WIDE)
    return [word] if letter_count(word) <= size else [word[i : i + step] for i in range(0, len(word), step)]


@dataclass(frozen=True, eq=False)
class CrossLsi:
    """The right singular vectors of both languages: `source` float32 [v_source, k], `target` float32 [v_target, k]."""

    source: Float32Array
    target: Float32Array

    def fold_source(self, weights: sp.csr_array) -> Float32Array:
        """Return tf-idf rows of source pages [n, v_source] as unit vectors, float32 [n, k]; zeros for an empty page."""
        return normalised(weights @ self.source)

    def fold_target(self, weights: sp.csr_array) -> Float32Array:
        """Return tf-idf rows of target pages [m, v_target] as unit vectors, float32 [m, k]; zeros for an empty page."""
        return normalised(weights @ self.target)


def fit_lsi(source: sp.csr_array, target: sp.csr_array, size: int) -> CrossLsi:
    """Return a latent space of at most min(`size`, n − 1) dimensions, learned from n linked pages; deterministic.

    `source` [n, v_source] and `target` [n, v_target] are tf-idf rows, row i linked to row i.
    """
    joined = sp.csr_array(sp.hstack([source, target], format="csr"), dtype=np.float32)
    size = max(1, min(size, joined.shape[0] - 1))
    if joined.shape[0] <= EXACT:
        values, left = np.linalg.eigh((joined @ joined.T).toarray())
        left, values = left[:, ::-1][:, :size], np.sqrt(np.maximum(values[::-1][:size], 1e-12))
        components = (joined.T @ left) / values
    else:
        components = _largest(joined, size)
    components = np.ascontiguousarray(components, dtype=np.float32)
    cut = source.shape[1]
    return CrossLsi(components[:cut], components[cut:])


def _largest(matrix: sp.csr_array, size: int) -> npt.NDArray[Any]:
    """Return right singular vectors [columns, size] of a matrix with too many rows for its Gram matrix."""
    from scipy.sparse.linalg import svds

    start = np.ones(min(matrix.shape), dtype=np.float32)
    return np.asarray(svds(matrix, k=size, v0=start)[2].T)
