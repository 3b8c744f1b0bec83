"""Word-by-word translation with a bilingual dictionary: crude, local and fast, if there is no better tool."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linker.corpora.dictionaries import read_dictionary
from linker.scoring.pairs.words import RUN, RUN_OR_LETTERS

TURKISH = ("tr", "az", "tur", "aze")


@dataclass(frozen=True, slots=True)
class Table:
    """The translation of each word of a language; its longest word in Han and kana has `longest` characters."""

    language: str
    words: Mapping[str, str]
    longest: int

    @classmethod
    def of(cls, language: str, pairs: Iterable[tuple[str, str]]) -> Table:
        """Return the table of pairs (word, translation), with the first of several translations."""
        words: dict[str, str] = {}
        for word, translation in pairs:
            words.setdefault(folded(word, language), translation)
        return cls(language, words, max((len(word) for word in words if RUN.fullmatch(word)), default=0))

    def translated(self, word: str) -> str:
        """Return a word's translation, or the word if there is none; a capitalised word stays capitalised.

        A run of Han or kana, which has no spaces, is split from left to right into the longest words in the table.
        """
        if RUN.match(word):
            return self._of_run(word)
        translation = self.words.get(folded(word, self.language), word)
        return translation[:1].upper() + translation[1:] if word[0].isupper() else translation

    def _of_run(self, run: str) -> str:
        parts, place, known = [], 0, False
        while place < len(run):
            ends = range(min(len(run), place + self.longest), place, -1)
            end = next((end for end in ends if run[place:end] in self.words), None)
            known = known or end is not None
            parts.append(run[place] if end is None else self.words[run[place:end]])
            place = end or place + 1
        return f" {' '.join(parts)} " if known else run


class DictionaryTranslator:
    """Replaces each word found in a dictionary with its first translation; everything else is left unchanged."""

    def __init__(self, template: str) -> None:
        """`template` is the path of a dictionary for `read_dictionary`, with {source} and {target} in it.

        If there is no file for a direction, the file of the other direction is used, reversed.
        """
        self._template = template
        self._load = functools.lru_cache(maxsize=8)(self._read)

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Translate `texts` word by word. Raises InputError if there is no dictionary for either direction."""
        table = self._load(source, target)
        return [RUN_OR_LETTERS.sub(lambda word: table.translated(word[0]), text) for text in texts]

    def _read(self, source: str, target: str) -> Table:
        straight, turned = (
            Path(self._template.replace("{source}", a).replace("{target}", b))
            for a, b in ((source, target), (target, source))
        )
        path = straight if straight.exists() or not turned.exists() else turned
        pairs = read_dictionary(path).pairs
        return Table.of(source, pairs if path == straight else (pair[::-1] for pair in pairs))


def folded(word: str, language: str) -> str:
    """Return a word in lower case, by Turkish rules in Turkish and Azerbaijani."""
    if language in TURKISH:
        word = word.replace("I", "ı")
    return word.replace("İ", "i").lower()
