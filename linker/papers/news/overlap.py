"""Surface overlap of two articles: tf-idf cosines of their words, names and numbers. Needs no NLP pipeline."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import xxhash

from indexes.dtypes import Float64Array
from linker.scoring.pairs.words import spaced

KINDS = ("words", "names", "numbers")
BUCKETS = 1 << 16  # number of buckets for document frequencies; the words themselves are compared exactly
# How many leading letters of a word and of a name are compared: in most languages, endings vary by case and number.
STEM, NAME = 5, 6
WORD = re.compile(r"[^\W\d_]\w*")
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# A word inside a sentence; capitalised ones count as names. German capitalises all nouns, so shared nouns count there.
INSIDE = re.compile(r"(?<=[\w,;] )[^\W\d_][\w-]+")

Counts = Counter[str]
Frequencies = npt.NDArray[np.int64]


class Overlap:
    """Document frequencies of a training corpus, and cosines weighted by them."""

    def __init__(self, frequencies: Frequencies, articles: int) -> None:
        """`frequencies`, int64 [3, BUCKETS], counts the articles that contain a token of each bucket."""
        self.frequencies, self.articles = frequencies, articles

    @classmethod
    def fit(cls, texts: Iterable[str]) -> Overlap:
        """Return the document frequencies of `texts`."""
        frequencies = np.zeros((len(KINDS), BUCKETS), np.int64)
        articles = 0
        for text in texts:
            articles += 1
            for row, counts in enumerate(tokens(text)):
                frequencies[row, list({_bucket(token) for token in counts})] += 1
        return cls(frequencies, articles)

    def cosines(self, first: Sequence[str], second: Sequence[str]) -> Float64Array:
        """Return the cosines of words, names and numbers, float64 [n, 3]; 0 if an article has none."""
        rows = [
            [
                self._cosine(row, a, b)
                for row, (a, b) in enumerate(zip(tokens(left), tokens(right), strict=True))
            ]
            for left, right in zip(first, second, strict=True)
        ]
        return np.array(rows, np.float64).reshape(len(rows), len(KINDS))

    def products(self, kind: str, first: str, second: str) -> dict[str, float]:
        """Return, for each token of a kind that two texts share, the product of its weights in both."""
        row = KINDS.index(kind)
        left, right = (self._weights(row, tokens(text)[row]) for text in (first, second))
        return {token: weight * right[token] for token, weight in left.items() if token in right}

    def _cosine(self, row: int, a: Counts, b: Counts) -> float:
        left, right = self._weights(row, a), self._weights(row, b)
        dot = sum(weight * right.get(token, 0.0) for token, weight in left.items())
        lengths = sum(w * w for w in left.values()) * sum(w * w for w in right.values())
        return dot / math.sqrt(lengths) if dot else 0.0

    def _weights(self, row: int, counts: Counts) -> dict[str, float]:
        """Return each token's weight (1 + ln tf) · (1 + ln((1 + N)/(1 + df)))."""
        frequencies, total = self.frequencies[row], 1 + self.articles
        return {
            token: (1 + math.log(count)) * (1 + math.log(total / (1 + int(frequencies[_bucket(token)]))))
            for token, count in counts.items()
        }


def tokens(text: str) -> tuple[Counts, Counts, Counts]:
    """Return the counts of words and of capitalised words inside sentences, both truncated, and of numbers."""
    words = Counter(stem(word) for word in words_of(text))
    names = Counter(word.lower()[:NAME] for word in INSIDE.findall(text) if word[0].isupper())
    return words, names, Counter(NUMBER.findall(text))


def words_of(text: str) -> list[str]:
    """Return the words of a text as written; for a run of Chinese or Japanese, its character bigrams."""
    return WORD.findall(spaced(text))


def stem(word: str) -> str:
    """Return the part of a word that is compared."""
    return word.lower()[:STEM]


def _bucket(token: str) -> int:
    return xxhash.xxh3_64_intdigest(token.encode(errors="surrogatepass")) % BUCKETS
