"""Pages as dense vectors: encoded in chunks, mean-pooled, and compared by cosine."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.arrays import normalised
from indexes.dtypes import Float32Array
from linker.encoders.interface import Encoder

CHUNK = 1000  # Latin letters, about 250 tokens
WIDE = 4  # letters that a Chinese, Japanese or Korean character counts as
GROUP = 64  # pages encoded at a time


@dataclass(frozen=True, eq=False)
class Cosines:
    """Cosines of all pairs: `source` float32 [n, d] and `target` float32 [m, d], rows of length 1 or 0."""

    source: Float32Array
    target: Float32Array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and target pages."""
        return len(self.source), len(self.target)

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the cosines of the source pages begin … end−1: float32 [end − begin, targets]."""
        return self.source[begin:end] @ self.target.T


def encode_pages(
    encoder: Encoder, texts: Sequence[str], advance: Callable[[int], object] = lambda done: None
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
    completed: list[str] = []
    current: list[str] = []
    used = 0
    for word in text.split():
        for piece in _pieces(word, size):
            width = letter_count(piece)
            if current and used + width > size:
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
