"""What differs between languages: casing, where words end, how much of a word is its stem."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from indexes.errors import importing

STEMS = {"fr": 7, "de": 8, "ru": 6, "tr": 6}  # characters that are kept, chosen on training pages
DEFAULT_STEM = 7
UNSPACED = ("ja", "th", "lo", "km", "my", "bo")  # written without blanks: character bigrams stand for words
TURKISH = str.maketrans({"I": "ı", "İ": "i"})
HAN = re.compile(r"[㐀-䶿一-鿿豈-﫿]+")


@dataclass(frozen=True, slots=True)
class Language:
    """One language: `code` (ISO 639-1, or "und"), and `stem`, how many first characters of a word are kept."""

    code: str
    stem: int = DEFAULT_STEM

    def fold(self, text: str) -> str:
        """Return the text in compatibility form (NFKC) and lower case; Turkish casing, Chinese simplified."""
        text = unicodedata.normalize("NFKC", text)
        if self.code in ("tr", "az"):
            text = text.translate(TURKISH)
        elif self.code == "zh":
            text = _converter("t2s")(text)
        return text.replace("İ", "i").lower()

    def words(self, text: str) -> list[str]:
        """Return the words in lower case, in order; words of one character are left out.

        Pages that list characters would otherwise match everything. Chinese needs the extra 'crosslingual'.
        """
        found = _word().findall(self.fold(text))
        if self.code == "zh":
            found = [part for word in found for part in _chinese(word)]
        elif self.code in UNSPACED:
            found = [part for word in found for part in _bigrams(word)]
        return [word for word in found if len(word) > 1]

    def headwords(self, text: str) -> list[str]:
        """Return the forms in which pages may write a dictionary's word: none if it is several words.

        Of a Chinese word, its characters simplified, and what the mainland says where Taiwan says otherwise.
        """
        forms = [self.fold(text)]
        if self.code == "zh":
            forms.append(self.fold(_converter("tw2sp")(text)))
        return [
            word for form in dict.fromkeys(forms) if len(word := form.strip()) > 1 and len(word.split()) == 1
        ]

    def term(self, word: str) -> str:
        """Return the stem of a lower-case word: its first characters."""
        return word[: self.stem]

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's words, in order."""
        return [word[: self.stem] for word in self.words(text)]


def language(code: str) -> Language:
    """Return the language of a code ("fr", "pt-BR"); one that was never tuned gets the default stem length."""
    short = code.lower().replace("_", "-").partition("-")[0] or "und"
    return Language(short, STEMS.get(short, DEFAULT_STEM))


@cache
def _word() -> re.Pattern[str]:
    """Letters and digits with the marks that belong to them (vowel signs are no letters to `re`)."""
    marks = [c for c in range(0x300, 0x10000) if unicodedata.category(chr(c)) in ("Mn", "Mc")]
    starts = [b for a, b in pairwise([-1, *marks]) if b != a + 1]
    ends = [a for a, b in pairwise([*marks, sys.maxunicode + 1]) if b != a + 1]
    inside = "".join(f"{chr(s)}-{chr(e)}" for s, e in zip(starts, ends, strict=True))
    return re.compile(rf"[^\W_](?:[^\W_]|[{inside}])*")


@cache
def _segmenter() -> Callable[[str], list[str]]:
    with importing("Chinese (rjieba cuts it into words)", "crosslingual"):
        from rjieba import cut_for_search
    return cut_for_search


@cache
def _converter(kind: str) -> Callable[[str], str]:
    with importing("Chinese (OpenCC makes its characters simplified)", "crosslingual"):
        from opencc import OpenCC
    convert: Callable[[str], str] = OpenCC(kind).convert
    return convert


def _chinese(word: str) -> Iterable[str]:
    """Cut a run of letters into words; long words come with the words inside them."""
    return _segmenter()(word) if HAN.search(word) else (word,)


def _bigrams(word: str) -> Iterable[str]:
    if word.isascii() or len(word) < 3:
        return (word,)
    return (a + b for a, b in pairwise(word))
