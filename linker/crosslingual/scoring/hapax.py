"""Shared hapax legomena, words that occur once on each of two pages (the LINA.p run of BUCC 2015)."""

import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from indexes.dtypes import Float32Array
from linker.crosslingual.pages.pages import Pages, Terms, count_terms
from linker.crosslingual.pages.surface import romanise
from linker.crosslingual.scoring.split_product import SplitProduct


@dataclass(frozen=True, slots=True)
class HapaxRules:
    """Definition of a hapax: a whitespace-separated string that occurs once on its page.

    `min_length` is in characters; `lower` ignores case; `strip` removes punctuation at both ends; `digits` admits
    strings with digits; `transliterate` romanises; `ngrams` > 0 compares character n-grams of that length instead.
    """

    min_length: int = 4
    lower: bool = True
    strip: bool = True
    digits: bool = True
    transliterate: bool = False
    ngrams: int = 0

    def find(self, text: str) -> list[str]:
        """Return the hapaxes of a text, or their n-grams."""
        words = (text.lower() if self.lower else text).split()
        if self.strip:
            words = [word if word.isalnum() else _bare(word) for word in words]
        once = [word for word, count in Counter(words).items() if count == 1 and len(word) >= self.min_length]
        if not self.digits:
            once = [word for word in once if not any(c.isdigit() for c in word)]
        if self.transliterate:
            once = [romanise(word) for word in once]
        return [gram for word in once for gram in _ngrams(word, self.ngrams)] if self.ngrams else once


@dataclass(frozen=True, eq=False)
class SharedHapaxes:
    """n + Dice/2 of all pairs, where n = |Hap(s) ∩ Hap(t)| and Dice = 2n / (|Hap(s)| + |Hap(t)|) < 2 breaks ties."""

    shared: SplitProduct
    source_sizes: Float32Array
    target_sizes: Float32Array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and target pages."""
        return self.shared.shape

    def block(self, begin: int, end: int) -> Float32Array:
        """Return n + Dice/2 of the source pages begin … end−1: float32 [end − begin, targets]."""
        n = self.shared.block(begin, end)
        # Row by row, to stay in the CPU cache. Without hapaxes nothing is shared either, and the quotient is 0.
        others = np.maximum(self.target_sizes, 1)
        for i, size in enumerate(self.source_sizes[begin:end]):
            n[i] += n[i] / (size + others)
        return n


def shared_hapaxes(source: Pages, target: Pages, rules: HapaxRules | None = None) -> SharedHapaxes:
    """Return n + Dice/2 for two collections; `rules` defaults to `HapaxRules()`."""
    rules = rules or HapaxRules()
    return overlap(_hapaxes(source, rules), _hapaxes(target, rules))


# A pivot needs the hapaxes of the source twice.
@lru_cache(maxsize=4)
def _hapaxes(pages: Pages, rules: HapaxRules) -> Terms:
    return count_terms(pages.texts, rules.find)


def overlap(left: Terms, right: Terms) -> SharedHapaxes:
    """Return n + Dice/2 for two collections, given the counts of their hapaxes."""
    columns = left.common(right)
    product = SplitProduct.of(left.present[:, columns[0]], right.present[:, columns[1]])
    return SharedHapaxes(product, _sizes(left), _sizes(right))


def _sizes(terms: Terms) -> Float32Array:
    return np.diff(terms.counts.indptr).astype(np.float32)


def _bare(word: str) -> str:
    begin, end = 0, len(word)
    while begin < end and unicodedata.category(word[begin])[0] in "PS":
        begin += 1
    while end > begin and unicodedata.category(word[end - 1])[0] in "PS":
        end -= 1
    return word[begin:end]


def _ngrams(word: str, n: int) -> list[str]:
    return [word[i : i + n] for i in range(len(word) - n + 1)]
