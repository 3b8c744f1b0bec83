"""Turn text into BM25 terms, by language: split it into words, lower-case and stem them, drop stop words from queries.

Unless the settings say otherwise, the index keeps stop words, which cost little there, so that a query that consists
only of stop words ("The Who") still finds documents.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from indexes.text.parameters import BIGRAMS, LONGEST, STEMMED, WITHOUT_STOP_WORDS, AnalysisSettings
from indexes.text.rewriting import whole_numbers, without_marks

# Combining marks belong to words: otherwise, Tamil and Hindi words would be split at each virama. Slower than `simple`.
WORD_WITH_MARKS = r"[\p{L}\p{M}\p{N}]+"
WORD_OF_POST = rf"[@#]?{WORD_WITH_MARKS}(?:_+{WORD_WITH_MARKS})*"
TURKISH_I = str.maketrans({"I": "ı", "İ": "i"})
# Runs of characters written without spaces: kana, Han, Hangul. U+30FB, a dot between words, is excluded.
CJK_RUN = re.compile(
    "[\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)


# A piece is the text between two separators: punctuation and symbols, which are not part of a word in any script.
SEPARATORS = (
    "\x00-/:-@[-`{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u060c\u060d\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965"
    "\u2000-\u206f\u20a0-\u20c0\u2190-\u23ff\u3000-\u3004\u3008-\u3020\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40"
    "\uff5b-\uff65\U0001f300-\U0001f64f\U0001f680-\U0001f6ff"
)
SEPARATED = re.compile(f"[^{SEPARATORS}]+")
# a translation table for ASCII text, which turns the same separators into spaces
ASCII = "".join(c if c.isalnum() else " " for c in map(chr, range(128)))
IN_NUMBER = r"(?<=[0-9])[.,](?=[0-9])"
WITH_NUMBERS = re.compile(f"(?:[^{SEPARATORS}]+|{IN_NUMBER})+")
HAS_NUMBER = re.compile(IN_NUMBER)
CHUNK = re.compile(r"[^\x00-\x20\x7f]+")


def cutter(settings: AnalysisSettings) -> Callable[[str], list[str]]:
    """Return the function that splits a prepared text into pieces.

    Posts are split only at spaces and control characters, since a URL may contain anything else; other texts are split
    at every separator except a point or comma between digits.
    """
    return CHUNK.findall if settings.tokenizer == "posts" else _words


def _words(text: str) -> list[str]:
    if HAS_NUMBER.search(text):
        return WITH_NUMBERS.findall(text)
    return text.translate(ASCII).split() if text.isascii() else SEPARATED.findall(text)


class Analysis:
    """Turns texts and queries into terms, as the language and the other settings require.

    Words in the languages of `STEMMED` are stemmed (Snowball), and stop words are dropped from queries if a list
    exists, from documents only if the settings say so. Texts in `BIGRAMS` are split into overlapping pairs of
    characters; words in other scripts stay whole. For "none", words are only lower-cased. Raises IndexesError for an
    unknown language.
    """

    def __init__(self, settings: str | AnalysisSettings) -> None:
        self.settings = AnalysisSettings.of(settings)
        self.language = self.settings.language
        self._for_documents = _analyzer(self.settings, stop_words=self.settings.stop_words)
        self._for_queries = _analyzer(self.settings, stop_words=True)
        self._numbers = whole_numbers(self.language)
        self.pieces = cutter(self.settings)

    def prepare(self, text: str) -> str:
        """Return the text as `terms` expects it: with composed characters, and split into pairs for `BIGRAMS`."""
        if self.language in BIGRAMS:
            return CJK_RUN.sub(_pairs, unicodedata.normalize("NFKC", text))
        if self.language == "turkish":
            text = unicodedata.normalize("NFC", text).translate(TURKISH_I)
        return text if text.isascii() else unicodedata.normalize("NFC", text)

    def terms(self, prepared: str) -> list[str]:
        """Return the terms of a document's prepared text, or of one of its pieces."""
        return self._analyse(self._for_documents, prepared)

    def terms_of_each(self, pieces: Sequence[str]) -> list[Sequence[str]]:
        """Return the result of `terms` for each of several pieces; plain words are analysed in one call."""
        plain = [len(piece) < LONGEST and piece.isascii() and piece.isalnum() for piece in pieces]
        words = list(itertools.compress(pieces, plain))
        together = self.terms(" ".join(words))
        # A plain word yields one term or none, so equal counts mean one term each.
        if len(words) != len(together):
            return [self.terms(piece) for piece in pieces]
        terms = zip(together, strict=True)  # tuples of one term each
        return [
            next(terms) if is_plain else self.terms(piece)
            for piece, is_plain in zip(pieces, plain, strict=True)
        ]

    def content_terms(self, prepared: str) -> list[str]:
        """Return the terms, except stop words, of a query's prepared text or of one of its pieces."""
        return self._analyse(self._for_queries, prepared)

    def _analyse(self, analyzer: TextAnalyzer, prepared: str) -> list[str]:
        text = encodable(prepared)
        if self.settings.tokenizer == "posts":
            text = without_marks(text)
        terms: list[str] = analyzer.analyze(self._numbers(text))
        shortest = self.settings.min_token
        return terms if shortest == 1 else [term for term in terms if len(term) >= shortest]

    def query_terms(self, text: str) -> Counter[str]:
        """Return the query's terms and their counts; stop words are included only if there are no other terms."""
        prepared = self.prepare(text)
        return Counter(self.content_terms(prepared) or self.terms(prepared))


def encodable(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 cannot encode, replaced by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _analyzer(settings: AnalysisSettings, *, stop_words: bool) -> TextAnalyzer:
    language = settings.language
    builder = TextAnalyzerBuilder(_tokenizer(settings))
    builder = builder.filter(Filter.remove_long(LONGEST)).filter(Filter.lowercase())
    if language in STEMMED:
        if stop_words and language not in WITHOUT_STOP_WORDS:
            builder = builder.filter(Filter.stopword(language))
        builder = builder.filter(Filter.stemmer(language))
    return builder.build()


def _tokenizer(settings: AnalysisSettings) -> Tokenizer:
    if settings.tokenizer == "posts":
        return Tokenizer.regex(WORD_OF_POST)
    return Tokenizer.regex(WORD_WITH_MARKS) if settings.language in ("tamil", "none") else Tokenizer.simple()


def _pairs(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(text[i : i + 2] for i in range(max(1, len(text) - 1)))} "
