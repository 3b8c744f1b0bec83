"""From text to BM25 terms, by language: words, lower case, stems. Stop words are dropped from queries only.

They stay in the index, where they cost little, so that a query of stop words alone ("The Who") still finds documents.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from indexes.text.parameters import BIGRAMS, LONGEST, STEMMED, WITHOUT_STOP_WORDS, AnalysisSettings

# Marks belong to words: otherwise Tamil and Hindi words would be split at each suppressed vowel. This is slower.
WORD_WITH_MARKS = r"[\p{L}\p{M}\p{N}]+"
TURKISH_I = str.maketrans({"I": "ı", "İ": "i"})
# Runs of characters written without spaces: kana, Han, Hangul. U+30FB, a dot between words, is not one of them.
CJK_RUN = re.compile(
    "[\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)


class Analysis:
    """How texts and queries of one language become terms.

    Words in the languages of `STEMMED` are stemmed (Snowball), and stop words are dropped from queries where a list
    exists. Texts in `BIGRAMS` are cut into overlapping pairs of characters; words in other scripts stay whole. "none"
    takes words as they are. Raises IndexesError for any other language.
    """

    def __init__(self, settings: str | AnalysisSettings) -> None:
        self.settings = AnalysisSettings.of(settings)
        self.language = language = self.settings.language
        self.analyzer = _analyzer(language, stop_words=False)
        self.for_queries = _analyzer(language, stop_words=True)

    def prepare(self, text: str) -> str:
        """Return the text as `analyzer` expects it: composed characters, and character pairs for `BIGRAMS`."""
        if self.language in BIGRAMS:
            return CJK_RUN.sub(_pairs, unicodedata.normalize("NFKC", text))
        if self.language == "turkish":
            text = unicodedata.normalize("NFC", text).translate(TURKISH_I)
        return text if text.isascii() else unicodedata.normalize("NFC", text)

    def query_terms(self, text: str) -> Counter[str]:
        """Return the query's terms and their counts; stop words are included only if there is nothing else."""
        prepared = encodable(self.prepare(text))
        return Counter(self.for_queries.analyze(prepared) or self.analyzer.analyze(prepared))


def encodable(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 cannot encode, replaced by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _analyzer(language: str, *, stop_words: bool) -> TextAnalyzer:
    marks = language in ("tamil", "none")
    builder = TextAnalyzerBuilder(Tokenizer.regex(WORD_WITH_MARKS) if marks else Tokenizer.simple())
    builder = builder.filter(Filter.remove_long(LONGEST)).filter(Filter.lowercase())
    if language in STEMMED:
        if stop_words and language not in WITHOUT_STOP_WORDS:
            builder = builder.filter(Filter.stopword(language))
        builder = builder.filter(Filter.stemmer(language))
    return builder.build()


def _pairs(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(text[i : i + 2] for i in range(max(1, len(text) - 1)))} "
