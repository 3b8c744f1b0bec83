"""Language-specific rules: casing, word boundaries, and stems."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import pairwise

from indexes.errors import importing
from indexes.text.analysis import Analysis

STEMS = {"fr": 7, "de": 8, "ru": 6, "tr": 6}  # characters per stem, chosen on training pages
DEFAULT_STEM = 7
# Cutting words leaves Arabic its articles and vowel marks, and Finnish the endings of its cases.
SNOWBALL = {"ar": "arabic", "fi": "finnish"}
STEMMED = 1 << 17  # words whose Snowball stems are remembered
# Languages without spaces or, in Korean, with particles at the ends of words: character bigrams serve as words, as do
# longer words of a dictionary.
BIGRAMS = ("ja", "ko", "th", "lo", "km", "my", "bo")
SHORTEST = 3  # minimum length of these words
TURKISH = str.maketrans({"I": "ı", "İ": "i"})
HAN = re.compile(r"[㐀-䶿一-鿿豈-﫿]+")


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its `code` (ISO 639-1, or "und") and the length of a `stem`, a prefix of a word, in characters.

    Languages in `SNOWBALL` have stems of any length.

    `known`: words that are found inside others in `BIGRAMS`, by their first `SHORTEST` characters.
    """

    code: str
    stem: int = DEFAULT_STEM
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def knowing(self, texts: Iterable[str]) -> Language:
        """Return the language, extended by a dictionary's words if it is in `BIGRAMS`. Raises as `fold` does."""
        if self.code not in BIGRAMS:
            return self
        words = dict.fromkeys(word for text in texts for word in self.headwords(text))
        known: dict[str, tuple[str, ...]] = {}
        for word in (word for word in words if len(word) >= SHORTEST and not word.isascii()):
            known[word[:SHORTEST]] = (*known.get(word[:SHORTEST], ()), word)
        return replace(self, known=known)

    def fold(self, text: str) -> str:
        """Return the text in NFKC and lower case, and Chinese in simplified characters. Raises MissingExtraError."""
        text = unicodedata.normalize("NFKC", text)
        if self.code in ("tr", "az"):
            text = text.translate(TURKISH)
        elif self.code == "zh":
            text = _converter("t2s")(text)
        return text.replace("İ", "i").lower()

    def words(self, text: str) -> list[str]:
        """Return the words in lower case, in order, without words of one character.

        Pages that list characters would otherwise match every page. Raises the same errors as `fold`.
        """
        words = _word().findall(self.fold(text))
        if self.code == "zh":
            words = [part for word in words for part in _chinese(word)]
        elif self.code in BIGRAMS:
            words = [part for word in words for part in (*_bigrams(word), *self._inside(word))]
        return [word for word in words if len(word) > 1]

    def _inside(self, word: str) -> Iterable[str]:
        if not self.known:
            return ()
        starts = ((i, self.known.get(word[i : i + SHORTEST], ())) for i in range(len(word)))
        return (known for i, words in starts for known in words if word.startswith(known, i))

    def headwords(self, text: str) -> list[str]:
        """Return the forms that a dictionary's headword takes on pages, or none if it consists of several words.

        A Chinese headword has up to two: its simplified characters, and the mainland term for a Taiwanese one. Raises
        the same errors as `fold`.
        """
        forms = [self.fold(text)]
        if self.code == "zh":
            forms.append(self.fold(_converter("tw2sp")(text)))
        return [
            word for form in dict.fromkeys(forms) if len(word := form.strip()) > 1 and len(word.split()) == 1
        ]

    def translations(self, text: str) -> list[str]:
        """Return the stems of a dictionary's translation; in `BIGRAMS`, whole words."""
        if self.code in BIGRAMS:
            return [self.term(word) for word in self.headwords(text)]
        return self.terms(text)

    def term(self, word: str) -> str:
        """Return the stem of a lower-case word: Snowball's, or its first `stem` characters."""
        return _snowball(SNOWBALL[self.code], word) if self.code in SNOWBALL else word[: self.stem]

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's words, in order."""
        return [self.term(word) for word in self.words(text)]


def language(code: str) -> Language:
    """Return the language of a code such as "fr" or "pt-BR"; untuned languages get the default stem length."""
    short = code.lower().replace("_", "-").partition("-")[0] or "und"
    return Language(short, STEMS.get(short, DEFAULT_STEM))


@cache
def _word() -> re.Pattern[str]:
    """Match letters and digits with their combining marks: `re` does not count vowel signs as letters."""
    marks = [c for c in range(0x300, 0x10000) if unicodedata.category(chr(c)) in ("Mn", "Mc")]
    starts = [b for a, b in pairwise([-1, *marks]) if b != a + 1]
    ends = [a for a, b in pairwise([*marks, sys.maxunicode + 1]) if b != a + 1]
    inside = "".join(f"{chr(s)}-{chr(e)}" for s, e in zip(starts, ends, strict=True))
    return re.compile(rf"[^\W_](?:[^\W_]|[{inside}])*")


@lru_cache(maxsize=STEMMED)
def _snowball(name: str, word: str) -> str:
    analysis = _analysis(name)
    return next(iter(analysis.terms(analysis.prepare(word))), word)


_analysis = cache(Analysis)


@cache
def _segmenter() -> Callable[[str], list[str]]:
    with importing("Chinese (segmented by rjieba)", "crosslingual"):
        from rjieba import cut_for_search
    return cut_for_search


@cache
def _converter(kind: str) -> Callable[[str], str]:
    with importing("Chinese (simplified by OpenCC)", "crosslingual"):
        from opencc import OpenCC
    convert: Callable[[str], str] = OpenCC(kind).convert
    return convert


def _chinese(word: str) -> Iterable[str]:
    """Segment a run of characters; a long word comes with the shorter words inside it."""
    return _segmenter()(word) if HAN.search(word) else (word,)


def _bigrams(word: str) -> Iterable[str]:
    if word.isascii() or len(word) < 3:
        return (word,)
    return (a + b for a, b in pairwise(word))
