"""Queries in a language other than the index's: linked texts reveal the language and translate the words.

A lexicon is stored in the index, one per language. A query is assigned to the language whose texts contain its words
more often than the index's texts (naive Bayes over the shares of texts that contain a word). It is then searched for
with the best translation of each word (query translation, Darwish & Oard 2003, reduced to one translation each); a
word without a translation stays as it is, as names and numbers should. A text whose language is not SURE, such as a
few names, is searched for by its own words and by the translations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

import orjson

from indexes.store import schema
from indexes.store.schema import SchemaError, flag, mapping, number, one_of, record, text
from indexes.text.analysis import Analysis
from indexes.text.parameters import LANGUAGES
from linker.base.errors import InputError
from linker.base.files import read_regular
from linker.scoring.pairs.words import CHARACTER_OR_WORD

FORMAT = "linker-lexicon-1"
MOST_BYTES, MOST_WORDS = 64 << 20, 1_000_000
# Minimum length of the common beginning of an unknown term and a known one: in letters, and as a share of the former.
BEGINNING, SHARED = 5, 0.6
SURE = 5.0  # log odds from which a language is certain, 150 to 1
LONGEST_NOTE = 200  # maximum characters of a translation shown in an answer
VALUES = record(
    {
        "format": one_of((FORMAT,)),
        "code": text(3, "[a-z]{2,3}", "the code of a language"),
        "language": one_of(LANGUAGES),
        "words": mapping(text(200), text(200), most=MOST_WORDS),
        "leaning": mapping(text(200), number(-100, 100), most=MOST_WORDS),
        "reads": flag,
    }
)


class Translated(str):
    """A text in the language of the index; `asked`: the original text, which a multilingual encoder encodes instead."""

    asked: str

    @classmethod
    def of(cls, text: str, asked: str) -> Self:
        """Return a translation with the original query."""
        out = cls(text)
        out.asked = asked
        return out


@dataclass(frozen=True, eq=False)
class QueryLexicon:
    """Translations of a language's `words` (stems); its queries have a positive total `leaning`.

    `leaning`: log ratio of a word's frequency in the language's texts to that in the index's texts (natural log).
    `language` names the analysis; `reads`: whether the index's encoder finds more with the query itself.
    """

    code: str
    language: str
    words: Mapping[str, str] = field(repr=False)
    leaning: Mapping[str, float] = field(repr=False)
    reads: bool = False

    @cached_property
    def _analysis(self) -> Analysis:
        return Analysis(self.language)

    @property
    def name(self) -> str:
        """The language's name for readers."""
        return self.code if self.language == "none" else self.language.capitalize()

    def translated(self, text: str) -> str:
        """Return a text word by word in the language of the index, without stop words."""
        out = map(self._of_piece, self._analysis.pieces(self._analysis.prepare(text)))
        return " ".join(filter(None, out)) or text

    @cached_property
    def _of_piece(self) -> Callable[[str], str]:
        """The translation of a piece of a text, cached; the piece itself without one, empty for a stop word."""

        @lru_cache(MOST_WORDS)
        def translated(piece: str) -> str:
            terms = self._analysis.content_terms(piece)
            return " ".join(filter(None, map(self.word, terms))) or (piece if terms else "")

        return translated

    def word(self, term: str) -> str | None:
        """Return the translation of a term or, if it is unknown, of the term with the longest common beginning.

        Backed-off translation (Oard, Levow & Cabezas 2001), because stemmers do not unite all forms of a word in
        agglutinating languages.
        """
        least = max(BEGINNING, math.ceil(SHARED * len(term)))
        beginnings = (term[:end] for end in range(len(term), least - 1, -1))
        near = (self._beginnings[one] for one in beginnings if one in self._beginnings)
        return self.words.get(term) or next((self.words[one] for one in near), None)

    @cached_property
    def _beginnings(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for term in sorted(self.words, key=lambda term: (len(term), term)):
            for end in range(BEGINNING, len(term) + 1):
                found.setdefault(term[:end], term)
        return found

    def added(self, text: str) -> str:
        """Return the words of the translation that the text itself does not have."""
        own = {piece.lower() for piece in self._analysis.pieces(self._analysis.prepare(text))}
        return " ".join(word for word in self.translated(text).split() if word.lower() not in own)

    def write(self, folder: Path) -> None:
        """Write the lexicon into a folder, which may also hold those of other languages."""
        values = {
            "format": FORMAT, "code": self.code, "language": self.language, "words": dict(self.words),
            "leaning": dict(self.leaning), "reads": self.reads,
        }  # fmt: skip
        (folder / f"{self.code}.json").write_bytes(orjson.dumps(values, option=orjson.OPT_SORT_KEYS))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the lexicon of a language. Raises InputError if it is damaged or from another version."""
        try:
            values: dict[str, Any] = schema.parse(read_regular(path, MOST_BYTES))
            VALUES(values, "it")
        except (OSError, SchemaError) as e:
            raise InputError(
                f"{path} is not a lexicon of this version ({e}): learn it again with `linker link` and `save_model`"
            ) from None
        return cls(**{name: value for name, value in values.items() if name != "format"})


def likeliest(lexicons: Sequence[QueryLexicon], text: str) -> tuple[int, float]:
    """Return the number of the lexicon whose language a text is most likely in, and the log odds that it is."""
    words = CHARACTER_OR_WORD.findall(text.lower())
    odds = [sum(lexicon.leaning.get(word, 0.0) for word in words) for lexicon in lexicons]
    best = max(odds, default=-SURE)
    return (odds.index(best) if odds else -1), best


def understood(texts: Sequence[str], lexicons: Iterable[QueryLexicon]) -> tuple[list[str], tuple[str, ...]]:
    """Return the texts, translated if in another language, and a note on this for each language.

    Texts that may be in another language keep their words and get the translations in addition.
    """
    out, known = list(texts), [*lexicons]
    by_language: dict[tuple[str, bool], list[str]] = {}
    for number_, text_ in enumerate(texts if known else ()):
        place, odds = likeliest(known, text_)
        if odds <= -SURE:
            continue
        best, sure = known[place], odds >= SURE
        read = best.translated(text_) if sure else best.added(text_)
        if read:
            translation = read if sure else f"{text_} {read}"
            out[number_] = Translated.of(translation, text_ if best.reads else translation)
            by_language.setdefault((best.name, sure), []).append(read)
    return out, tuple(_note(*key, found, len(out)) for key, found in by_language.items())


def _note(language: str, sure: bool, found: Sequence[str], count: int) -> str:
    how = f"{language}: searched" if sure else f"{language}: also searched"
    if count > 1:
        return (
            f"{len(found):,} of {count:,} texts {'are' if sure else 'may be'} in {how} by the index's lexicon"
        )
    (read,) = found
    shown = read if len(read) <= LONGEST_NOTE else f"{read[:LONGEST_NOTE]}…"
    return f"the text {'is' if sure else 'may be'} in {how} by the index's lexicon as “{shown}”"
