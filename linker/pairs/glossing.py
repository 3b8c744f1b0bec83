"""Word-by-word translation by a bilingual dictionary: crude, local and fast, for languages that have nothing better."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from linker.crosslingual.lexicon.dictionaries import read_dictionary

WORD = re.compile(r"[^\W\d_]+")


class DictionaryTranslator:
    """Replaces each word that a dictionary has by its first translation there; all else stays as it is."""

    def __init__(self, template: str) -> None:
        """`template` is the path of a dictionary that `read_dictionary` reads, with {source} and {target} in it.

        If there is no file for a direction, that of the other direction is used, turned round.
        """
        self._template = template
        self._load = functools.lru_cache(maxsize=8)(self._read)

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations of `texts`; a capitalised word stays capitalised.

        Raises InputError where there is no dictionary for either direction.
        """
        table = self._load(source, target)
        return [WORD.sub(lambda word: _translated(word[0], table), text) for text in texts]

    def _read(self, source: str, target: str) -> Mapping[str, str]:
        straight, turned = (
            Path(self._template.replace("{source}", a).replace("{target}", b))
            for a, b in ((source, target), (target, source))
        )
        path = straight if straight.exists() or not turned.exists() else turned
        table: dict[str, str] = {}
        for pair in read_dictionary(path).pairs:
            word, translation = pair if path == straight else pair[::-1]
            table.setdefault(word.lower(), translation)
        return table


def _translated(word: str, table: Mapping[str, str]) -> str:
    translation = table.get(word.lower(), word)
    return translation[:1].upper() + translation[1:] if word[0].isupper() else translation
