"""The lexicon for searching an index in another language, learned from linked texts and dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from math import log
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from indexes.text.analysis import Analysis
from indexes.text.parameters import BIGRAMS, LONGEST, AnalysisSettings
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.corpora.dictionaries import Pair
from linker.corpora.languages import CODES
from linker.crosslingual.lexicon.induction import induce
from linker.crosslingual.pages.pages import Terms, count_terms
from linker.crosslingual.sides import Side, same_language
from linker.engine.engine import Engine
from linker.engine.lexicons import QueryLexicon
from linker.scoring.pairs.words import CHARACTER_OR_WORD

DICTIONARY = 1e6  # weight of a dictionary's word pairs; links rank these pairs, and add words that the dictionary lacks
WORDS = 200_000  # maximum number of words that identify the language
LEAST = 0.5  # minimum change in a language's log odds for a word to be stored
ASKED = 100  # linked texts on which the index's encoder is tested
BEGINNING = 300  # characters of each of these texts

Links = Sequence[tuple[str, str]]


def query_lexicon(foreign: Side, index: Side, links: Links, pairs: Iterable[Pair] = ()) -> QueryLexicon:
    """Return a lexicon that translates queries in the language of `foreign` for an index.

    `links`: pairs of ids, of a foreign text and of a document of the index; `pairs`: words of dictionaries, the foreign
    one first. Raises InputError if no words are learned.
    """
    assert index.engine is not None
    texts, documents = ([d.full_text for d in side.documents.values()] for side in (foreign, index))
    code = foreign.pages.language.code
    name = {code: name for name, code in CODES.items()}.get(code, "none")
    settings = AnalysisSettings(name), index.engine.collection.manifest.analysis
    x, y = (
        count_terms(all_, partial(_terms, by)) for all_, by in zip((texts, documents), settings, strict=True)
    )
    rows, columns = ({id_: row for row, id_ in enumerate(side.documents)} for side in (foreign, index))
    linked = x.present[[rows[a] for a, _ in links]], y.present[[columns[b] for _, b in links]]
    entries = _entries(pairs, settings)
    if settings[1].language in BIGRAMS:  # no word of a text is a term: these are pairs of characters
        spelt = {term: term for term in y.vocabulary}
    else:
        spelt = _spellings(documents, settings[1])
    weights = sp.csr_array(induce(*linked) + _dictionary(entries, x, y))
    # Queries may also contain dictionary words that are in no foreign text.
    words = {
        one: spelt[other] for one, others in reversed(entries) for other in reversed(others) if other in spelt
    }
    words |= _best(weights, x, y, spelt)
    if not words:
        raise InputError(
            f"{len(links):,} links between {foreign.name} and {index.name} teach no words: pass more with `train`, or "
            "a `dictionary`"
        )
    lexicon = QueryLexicon(code, name, words, _leanings(texts, documents))
    logger.info("%s words of queries in %s can be translated", f"{len(words):,}", lexicon.name)
    return replace(lexicon, reads=_encoder_reads(lexicon, foreign, index.engine, links))


def is_source(where: Path, source: Side, target: Side) -> bool:
    """Return whether the index `where`, to get a lexicon, is the source. Raises InputError if it is neither side."""
    found = [where.resolve() in [path.resolve() for path in side.paths] for side in (source, target)]
    if not any(found):
        raise InputError(
            f"{where} is an index, but not one of the two being linked: name one of those, or a folder"
        )
    if same_language(source, target):
        raise InputError(
            f"{source.name} and {target.name} are in the same language: searches of {where} need no lexicon"
        )
    return found[0]


def store(into_source: bool, source: Side, target: Side, links: Links, pairs: Iterable[Pair]) -> None:
    """Learn a lexicon from pairs (source, target) and store it in a side's index. Raises InputError if it is empty."""
    foreign, index = source, target
    if into_source:
        foreign, index = target, source
        links, pairs = [(b, a) for a, b in links], ((b, a) for a, b in pairs)
    assert index.engine is not None
    index.engine.store_lexicon(query_lexicon(foreign, index, links, pairs))


def _terms(settings: AnalysisSettings, text: str) -> list[str]:
    analysis = _analysis(settings)
    return analysis.terms(analysis.prepare(text))


@cache
def _analysis(settings: AnalysisSettings) -> Analysis:
    return Analysis(settings)


def _entries(
    pairs: Iterable[Pair], settings: tuple[AnalysisSettings, AnalysisSettings]
) -> list[tuple[str, list[str]]]:
    """Return the term of each foreign word of a dictionary, and the terms of its translation in the index."""
    found = ((_terms(settings[0], one), _terms(settings[1], other)) for one, other in pairs)
    return [(terms[0], others) for terms, others in found if len(terms) == 1]


def _dictionary(entries: Iterable[tuple[str, list[str]]], x: Terms, y: Terms) -> sp.csr_array:
    """Return the weight DICTIONARY for each pair of terms in a dictionary: float64 CSR [v foreign, v index]."""
    cells = {
        (x.position[one], y.position[other])
        for one, others in entries
        for other in others
        if one in x.position and other in y.position
    }
    rows, columns = np.array(sorted(cells), np.int64).reshape(-1, 2).T
    shape = (len(x.vocabulary), len(y.vocabulary))
    return sp.csr_array((np.full(len(rows), DICTIONARY), (rows, columns)), shape=shape)


def _best(weights: sp.csr_array, x: Terms, y: Terms, spelt: Mapping[str, str]) -> dict[str, str]:
    """Return the spelling of each foreign term's best translation: if tied, the one on most pages."""
    words = {}
    for row, term in enumerate(x.vocabulary):
        here = slice(weights.indptr[row], weights.indptr[row + 1])
        columns = weights.indices[here]
        order = np.lexsort((columns, -y.document_frequency[columns], -weights.data[here]))
        best = next((y.vocabulary[c] for c in columns[order].tolist() if y.vocabulary[c] in spelt), None)
        if best is not None:
            words[term] = spelt[best]
    return words


def _spellings(texts: Iterable[str], settings: AnalysisSettings) -> dict[str, str]:
    """Return the most frequent word for each term that occurs in texts as a separate word."""
    seen = _texts_with(texts)
    spelt: dict[str, str] = {}
    for word, _ in sorted(seen.items(), key=lambda pair: (-pair[1], pair[0])):
        if len(terms := _terms(settings, word)) == 1:
            spelt.setdefault(terms[0], word)
    return spelt


def _leanings(foreign: Sequence[str], own: Sequence[str]) -> dict[str, float]:
    """Return by how much each word changes the log odds of the foreign language; words without an effect are left out.

    This is the log ratio of the shares of foreign texts and of own texts that contain the word.

    If there are too many words, those that occur in the most texts are used.
    """
    counts = [_texts_with(texts) for texts in (foreign, own)]
    sizes = len(foreign) + 1, len(own) + 1
    common = (counts[0] + counts[1]).most_common(WORDS)
    odds = {
        word: round(log((counts[0][word] + 0.5) / sizes[0]) - log((counts[1][word] + 0.5) / sizes[1]), 3)
        for word, _ in common
    }
    return {word: value for word, value in odds.items() if abs(value) >= LEAST}


def _texts_with(texts: Iterable[str]) -> Counter[str]:
    words = (word for text in texts for word in set(CHARACTER_OR_WORD.findall(text.lower())))
    return Counter(word for word in words if len(word) <= LONGEST)


def _encoder_reads(lexicon: QueryLexicon, foreign: Side, engine: Engine, links: Links) -> bool:
    """Return whether the index's encoder finds more linked documents from foreign texts than from their translations.

    The beginnings of some linked texts, evenly spaced, are matched against those of their documents.
    """
    if not engine.collection.manifest.embeds or engine.collection.manifest.encoder is None:
        return False
    some = links[:: max(1, -(-len(links) // ASKED))]
    texts = [foreign.documents[a].full_text[:BEGINNING] for a, _ in some]
    documents = engine.embed([engine.document(b).full_text[:BEGINNING] for _, b in some])
    itself, by_words = (
        float(((engine.embed(asked) @ documents.T).argmax(axis=1) == np.arange(len(some))).mean())
        for asked in (texts, [lexicon.translated(text) for text in texts])
    )
    logger.info(
        "the encoder finds %.0f %% by the texts, %.0f %% by their translations", 100 * itself, 100 * by_words
    )
    return itself > by_words
