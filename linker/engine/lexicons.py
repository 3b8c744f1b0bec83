"""Queries in a language other than the index's: lexicons learned from linked texts detect and translate it.

A lexicon is stored in the index, one per language. A query is assigned to the language whose texts contain its words
more often than the index's texts (naive Bayes over the shares of texts that contain a word). The search then uses the
best translation of each word (query translation, Darwish & Oard 2003, reduced to one translation each); a word without
a translation stays as it is, as names and numbers should. If the language is not certain (see SURE), as for a few
names, the search uses both the original words and their translations.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson

from indexes.dtypes import Float64Array
from indexes.store import schema
from indexes.store.schema import SchemaError, flag, mapping, number, one_of, record, text
from indexes.text.analysis import Analysis, encodable
from indexes.text.parameters import LANGUAGES, AnalysisSettings
from indexes.text.vocabulary import TermVocabulary
from linker.base.errors import InputError
from linker.base.files import read_regular
from linker.scoring.pairs.words import CHARACTER_OR_WORD

FORMAT = "linker-lexicon-1"
MOST_BYTES, MOST_WORDS = 64 << 20, 1_000_000
# Minimum length of the prefix shared by an unknown term and a known one: in letters, and as a share of the unknown one.
BEGINNING, SHARED = 5, 0.6
SURE = 5.0  # minimum log odds at which a language counts as certain: about 150 to 1
LONGEST_NOTE = 200  # maximum number of characters of a translation to show in an answer
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
    """A text translated into the index's language; `asked`: the text that the encoder encodes instead.
    It is the original text if the encoder finds more with that (`QueryLexicon.reads`), else the translation.
    """

    asked: str

    @classmethod
    def of(cls, text: str, asked: str) -> Self:
        """Return the translation `text`, with the text for the encoder."""
        out = cls(text)
        out.asked = asked
        return out


@dataclass(frozen=True, eq=False)
class QueryLexicon:
    """Translations of one language's `words` (stems); a query in this language has a positive total `leaning`.

    `leaning`: log ratio of a word's frequency in the language's texts to that in the index's texts (natural log).
    `language` names the text analysis; `reads`: whether the index's encoder finds more with the untranslated query.
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
        """The language's name for display."""
        return self.code if self.language == "none" else self.language.capitalize()

    def translated(self, text: str) -> str:
        """Translate a text word by word into the language of the index, without stop words."""
        out = map(self.of_piece, self._analysis.pieces(self._analysis.prepare(text)))
        return " ".join(filter(None, out)) or text

    @cached_property
    def of_piece(self) -> Callable[[str], str]:
        """The cached translation of a token: the token itself if it has no translation, or nothing for a stop word."""

        @lru_cache(MOST_WORDS)
        def translated(piece: str) -> str:
            terms = self._analysis.content_terms(piece)
            return " ".join(filter(None, map(self.word, terms))) or (piece if terms else "")

        return translated

    def word(self, term: str) -> str | None:
        """Return the translation of a term or, if it is unknown, of the term with the longest common prefix.

        This is backed-off translation (Oard, Levow & Cabezas 2001): stemmers do not conflate all forms of a word in
        agglutinative languages.
        """
        if translation := self.words.get(term):
            return translation
        least = max(BEGINNING, math.ceil(SHARED * len(term)))
        beginnings = (term[:end] for end in range(len(term), least - 1, -1))
        return next(
            (self.words[self._beginnings[one]] for one in beginnings if one in self._beginnings), None
        )

    @cached_property
    def _beginnings(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for term in sorted(self.words, key=lambda term: (len(term), term)):
            for end in range(BEGINNING, len(term) + 1):
                found.setdefault(term[:end], term)
        return found

    def added(self, text: str) -> str:
        """Return the words of the translation that the text itself does not contain."""
        own = {piece.lower() for piece in self._analysis.pieces(self._analysis.prepare(text))}
        return " ".join(word for word in self.translated(text).split() if word.lower() not in own)

    def write(self, folder: Path) -> None:
        """Write the lexicon into a folder, which may also contain lexicons of other languages."""
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
    """Return the position of the lexicon whose language a text is most likely in (−1: none), and the log odds of it."""
    words = CHARACTER_OR_WORD.findall(text.lower())
    odds = [sum(lexicon.leaning.get(word, 0.0) for word in words) for lexicon in lexicons]
    best = max(odds, default=-SURE)
    return (odds.index(best) if odds else -1), best


def odds_of_each(lexicons: Sequence[QueryLexicon], texts: Sequence[str]) -> Float64Array:
    """Return the log odds of many texts, as in `likeliest`: float64 [texts, lexicons]."""
    words = TermVocabulary(_Words("none"))
    numbers, counts = words.numbers(texts)
    owner = np.repeat(np.arange(len(texts)), counts)
    return np.column_stack(
        [
            np.bincount(
                owner, np.array([lexicon.leaning.get(word, 0.0) for word in words.terms])[numbers], len(texts)
            )
            for lexicon in lexicons
        ]
    )


class _Words(Analysis):
    """The analysis of texts whose language is to be recognised."""

    def prepare(self, text: str) -> str:
        return encodable(text).lower()

    def terms_of_each(self, pieces: Sequence[str]) -> list[Sequence[str]]:
        return list(map(CHARACTER_OR_WORD.findall, pieces))


class Translating(Analysis):
    """The analysis of texts in a lexicon's language: their terms are those of their translations."""

    def __init__(self, lexicon: QueryLexicon, settings: AnalysisSettings) -> None:
        """`settings`: the analysis of the texts of the index."""
        super().__init__(lexicon.language)
        self._lexicon, self._index = lexicon, Analysis(settings)

    def content_terms(self, prepared: str) -> list[str]:
        """Return the terms of a piece's translation."""
        # Compiled code splits texts at fewer characters than `pieces`.
        words = " ".join(map(self._lexicon.of_piece, self.pieces(prepared)))
        return self._index.content_terms(self._index.prepare(words)) if words else []

    def query_terms(self, text: str) -> Counter[str]:
        """Return the terms of a text's translation, and their counts."""
        return self._index.query_terms(self._lexicon.translated(text))


def translate_queries(
    texts: Sequence[str], lexicons: Iterable[QueryLexicon]
) -> tuple[list[str], tuple[str, ...]]:
    """Return the texts, translated if they are in another language, and a note for each language found.

    If it is uncertain whether a text is in another language, the translations are added to its own words.
    """
    out, known = list(texts), [*lexicons]
    by_language: dict[tuple[str, bool], list[str]] = {}
    for position, query in enumerate(texts if known else ()):
        number, odds = likeliest(known, query)
        if odds <= -SURE:
            continue
        best, sure = known[number], odds >= SURE
        read = best.translated(query) if sure else best.added(query)
        if read:
            translation = read if sure else f"{query} {read}"
            out[position] = Translated.of(translation, query if best.reads else translation)
            by_language.setdefault((best.name, sure), []).append(read)
    return out, tuple(_note(*key, found, len(out)) for key, found in by_language.items())


def _note(language: str, sure: bool, translations: Sequence[str], count: int) -> str:
    how = f"{language}: searched" if sure else f"{language}: also searched"
    if count > 1:
        return f"{len(translations):,} of {count:,} texts {'are' if sure else 'may be'} in {how} by the index's lexicon"
    (translation,) = translations
    shown = translation if len(translation) <= LONGEST_NOTE else f"{translation[:LONGEST_NOTE]}…"
    return f"the text {'is' if sure else 'may be'} in {how} by the index's lexicon as “{shown}”"
