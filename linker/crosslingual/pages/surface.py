"""Surface features that survive translation: romanised spelling, punctuation and numbers."""

import re
import unicodedata
from functools import cache

LETTERS = 4  # characters per n-gram
MARKS = 4  # marks in the longest sequence
_CYRILLIC = (
    "а a б b в v г g д d е e ё e ж zh з z и i й i к k л l м m н n о o п p р r с s т t у u ф f х h ц ts ч ch ш sh "
    "щ sh ъ  ы y ь  э e ю yu я ya є e і i ї i ґ g"
)
_GREEK = (
    "α a β v γ g δ d ε e ζ z η i θ th ι i κ k λ l μ m ν n ξ x ο o π p ρ r σ s ς s τ t υ y φ f χ ch ψ ps ω o"
)
_WORD = re.compile(r"[^\W\d_]+")
_MARK = re.compile(r"[^\w\s]|\d+|\n")
_SAME = str.maketrans("。、，；：？！（）«»„“”‘’", '.,,;:?!()"""""\'\'')


def romanise(text: str) -> str:
    """Return the text in lower case, Cyrillic and Greek transliterated by letter, and diacritics removed."""
    text = text.lower().translate(_table())
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def letters(text: str, least: int) -> list[str]:
    """Return the runs of `least` or more letters, in order."""
    return [word for word in _WORD.findall(text) if len(word) >= least]


def letter_grams(text: str) -> list[str]:
    """Return the 4-grams of the romanised words, with "_" at the words' boundaries."""
    grams: list[str] = []
    for word in letters(romanise(text), 3):
        if word.isascii():
            bounded = f"_{word}_"
            grams += [bounded[i : i + LETTERS] for i in range(len(bounded) - LETTERS + 1)]
    return grams


def mark_grams(text: str) -> list[str]:
    """Return all sequences of one to four marks (punctuation, numbers, line ends), which translations keep."""
    marks = _MARK.findall(unicodedata.normalize("NFKC", text.translate(_SAME)))
    return ["".join(marks[i : i + n]) for n in range(1, MARKS + 1) for i in range(len(marks) - n + 1)]


@cache
def _table() -> dict[int, str]:
    table = {ord("ı"): "i", ord("ß"): "ss", ord("ø"): "o", ord("ł"): "l", ord("æ"): "ae", ord("œ"): "oe"}
    for pairs in (_CYRILLIC, _GREEK):
        parts = pairs.split(" ")
        table.update({ord(a): b for a, b in zip(parts[::2], parts[1::2], strict=True)})
    return table
