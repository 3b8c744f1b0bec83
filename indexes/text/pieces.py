"""Where texts are cut into pieces, which are analysed one by one: only where no analysis continues a word.

`postings.c` cuts by the same rules, which `cutting` numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from indexes.text.parameters import AnalysisSettings

# Between pieces is punctuation and symbols, which are neither a letter nor a mark nor a number in any script.
SEPARATORS = (
    "\x00-/:-@[-`{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u060c\u060d\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965"
    "\u2000-\u206f\u20a0-\u20c0\u2190-\u23ff\u3000-\u3004\u3008-\u3020\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40"
    "\uff5b-\uff65\U0001f300-\U0001f64f\U0001f680-\U0001f6ff"
)
SEPARATED = re.compile(f"[^{SEPARATORS}]+")
ASCII = "".join(c if c.isalnum() else " " for c in map(chr, range(128)))  # the same for ASCII, as a table
IN_NUMBER = r"(?<=[0-9])[.,](?=[0-9])"
WITH_NUMBERS = re.compile(f"(?:[^{SEPARATORS}]+|{IN_NUMBER})+")
HAS_NUMBER = re.compile(IN_NUMBER)
CHUNK = re.compile(r"[^\x00-\x20\x7f]+")

# The rules' numbers in postings.c.
WORDS, WHOLE_NUMBERS, CHUNKS = 0, 1, 2


def cutting(settings: AnalysisSettings) -> int:
    """Return the rule by which the texts of an analysis are cut.

    Version 1 cuts at every separator, later ones not at a point or comma between digits, posts only at blanks
    and control characters, since an address may hold anything else.
    """
    if settings.tokenizer == "posts":
        return CHUNKS
    return WHOLE_NUMBERS if settings.version > 1 else WORDS


def cutter(settings: AnalysisSettings) -> Callable[[str], list[str]]:
    """Return the function that cuts a prepared text into pieces."""
    return {WORDS: _words, WHOLE_NUMBERS: _words_and_numbers, CHUNKS: _chunks}[cutting(settings)]


def _words(text: str) -> list[str]:
    return text.translate(ASCII).split() if text.isascii() else SEPARATED.findall(text)


def _chunks(text: str) -> list[str]:
    return CHUNK.findall(text)


def _words_and_numbers(text: str) -> list[str]:
    return WITH_NUMBERS.findall(text) if HAS_NUMBER.search(text) else _words(text)
