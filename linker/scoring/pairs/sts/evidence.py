"""Evidence of similarity that needs no head: cosines of encoders, word alignment, character n-grams, words, numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from indexes.dtypes import Float32Array, Float64Array
from linker.encoders.interface import Encoder
from linker.scoring.pairs.sts.scorer import Texts
from linker.scoring.pairs.words import count_cosine, lower_words

NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
NGRAMS = (2, 3, 4)
SURFACE = ("n-grams", "words", "numbers", "lengths")
ALIGNED = ("alignment", "weakest word")  # columns that come from the first encoder


class Vectors(Protocol):
    """A mapping from texts to vectors."""

    def __getitem__(self, text: str) -> Float32Array:
        """Return the vector of a text, float32 [d], L2-normalised."""
        ...


class CachedVectors:
    """The vectors of an encoder's texts, each computed once."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._known: dict[str, Float32Array] = {}

    def read(self, texts: Iterable[str]) -> None:
        """Encode the texts that are new, sorted by length."""
        new = sorted({*texts} - self._known.keys(), key=lambda text: (len(text), text))
        if new:
            self._known.update(zip(new, self.encoder.encode(new), strict=True))

    def __getitem__(self, text: str) -> Float32Array:
        return self._known[text]

    def sides(self, pairs: Sequence[Texts]) -> tuple[Float32Array, Float32Array]:
        """Return the vectors of the first and of the second texts of pairs, float32 [n, d] each."""
        self.read(text for pair in pairs for text in pair)
        u, v = (np.stack([self._known[pair[side]] for pair in pairs]) for side in (0, 1))
        return u, v


def names(encoders: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of `evidence`."""
    aligned = (f"{kind} of {encoders[0]}" for kind in ALIGNED)
    return (*SURFACE, *(f"cosine of {encoder}" for encoder in encoders), *aligned)


def evidence(pairs: Sequence[Texts], encoders: Mapping[str, CachedVectors]) -> Float64Array:
    """Return the evidence, float64 [n, f], that `names` names; the first encoder, a fast one, aligns words."""
    vectors = list(encoders.values())
    for one in vectors:
        one.read(text for pair in pairs for text in pair)
    vectors[0].read(word for pair in pairs for text in pair for word in lower_words(text))
    rows = [
        [*surface(*pair), *(float(v[pair[0]] @ v[pair[1]]) for v in vectors), *alignment(*pair, vectors[0])]
        for pair in pairs
    ]
    return np.array(rows, np.float64).reshape(len(pairs), len(names(list(encoders))))


def products(pairs: Sequence[Texts], encoders: Mapping[str, CachedVectors]) -> Float64Array:
    """Return |u − v| ⊕ u·v of each encoder's vectors u and v of a pair, float64 [n, 2 · Σ d], as in the frozen head."""
    found = []
    for vectors in encoders.values():
        u, v = vectors.sides(pairs)
        found += [np.abs(u - v), u * v]
    return np.concatenate(found, axis=1).astype(np.float64)


def surface(first: str, second: str) -> tuple[float, float, float, float]:
    """Return the cosines of character n-grams and of words, the share of shared numbers, and the ratio of lengths."""
    a, b = lower_words(first), lower_words(second)
    numbers = {*NUMBER.findall(first)}, {*NUMBER.findall(second)}
    every = numbers[0] | numbers[1]
    return (
        count_cosine(_ngrams(a), _ngrams(b)),
        count_cosine(Counter(a), Counter(b)),
        len(numbers[0] & numbers[1]) / len(every) if every else 1.0,
        min(len(a), len(b)) / max(len(a), len(b), 1),
    )


def alignment(first: str, second: str, vectors: Vectors) -> tuple[float, float]:
    """Return the word alignment of both texts, and the alignment of the worst-aligned word.

    A word is aligned with the other text's most similar word; the alignment is the mean cosine of all words of both
    texts, as in the greedy matching of Rus & Lintean (2012) and BERTScore, here over single words. A text without
    words aligns with nothing: 0.
    """
    a, b = lower_words(first), lower_words(second)
    if not a or not b:
        return 0.0, 0.0
    table = np.stack([vectors[word] for word in a]) @ np.stack([vectors[word] for word in b]).T
    forward, backward = table.max(axis=1), table.max(axis=0)
    return float(forward.mean() + backward.mean()) / 2, float(min(forward.min(), backward.min()))


def _ngrams(tokens: Sequence[str]) -> Counter[str]:
    text = f" {' '.join(tokens)} " if tokens else ""
    return Counter(text[i : i + n] for n in NGRAMS for i in range(len(text) - n + 1))
