"""Which words of a document speak for a link with a seed: the terms that BM25 finds in both, by what they weigh."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from indexes.text.analysis import CJK_RUN, Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.parameters import BIGRAMS
from indexes.text.scoring import find, lucene_idf
from indexes.text.vocabulary import term_hash

if TYPE_CHECKING:
    from indexes.collection import Collection

WORD = re.compile(r"[@#]?\w[\w\u0300-\u036f]*(?:['’]\w+)*")
RAREST = 24  # words of a query for copies
MARKED = 12  # terms, at most, that are marked and named: with all of them, the weightiest would drown


@dataclass(frozen=True, slots=True)
class Evidence:
    """`words`: the weightiest shared words as the document writes them, each with its share of the weight of all.

    `pieces`: the document's text, cut into pieces, each with whether it is one of these words; joined, they are the
    text.
    """

    words: tuple[tuple[str, float], ...]
    pieces: tuple[tuple[str, bool], ...]


def evidence(collection: Collection, seed: str, text: str) -> Evidence:
    """Return what the texts of a seed and of a document share in the terms of the index, without stop words.

    A term that occurs f times in the document weighs idf · f / (f + k1), BM25's weight without the document's length,
    which is the same for all terms. Where BM25 is on a server, every shared term weighs the same.
    """
    analysis = Analysis(collection.manifest.analysis)
    wanted = set(analysis.query_terms(seed))
    places = [(start, end, terms & wanted) for start, end, terms in _words(analysis, text)]
    marked = [(start, end, terms) for start, end, terms in places if terms]
    counts = Counter(term for _, _, terms in marked for term in terms)
    k1 = collection.manifest.bm25.k1
    weights = {t: idf * counts[t] / (counts[t] + k1) for t, idf in _idf(collection, list(counts)).items()}
    total = sum(weights.values()) or 1.0
    written: dict[str, str] = {}
    for start, end, terms in marked:
        for term in terms:
            written.setdefault(term, text[start:end])
    ranked = sorted(weights, key=lambda term: (-weights[term], term))[:MARKED]
    words = tuple((written[term], weights[term] / total) for term in ranked)
    heavy = frozenset(ranked)
    spans = [(start, end) for start, end, terms in marked if terms & heavy]
    return Evidence(words, tuple(_pieces(text, spans)))


def rarest_words(collection: Collection, text: str, count: int = RAREST) -> str:
    """Return the text's rarest words that another document has, too: a query for its copies, and a cheap one.

    A whole text as a query costs as much as its commonest words' posting lists. The text itself is returned where BM25
    is on a server, or no word is in another document.
    """
    analysis = Analysis(collection.manifest.analysis)
    written: dict[str, str] = {}
    for start, end, terms in _words(analysis, text):
        for term in terms:
            written.setdefault(term, text[start:end])
    idf = _idf(collection, list(written))
    unique = float(lucene_idf(np.array(1), len(collection.rows.ids)))
    ranked = sorted((t for t in written if idf[t] < unique), key=lambda term: (-idf[term], term))
    words = dict.fromkeys(written[term] for term in ranked[:count])
    return " ".join(words) if words and isinstance(collection.text, Bm25Index | FieldsIndex) else text


def _words(analysis: Analysis, text: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield where each word of the text begins and ends, and its terms; of a run of Han or kana, each pair."""
    known: dict[str, frozenset[str]] = {}

    def terms(word: str) -> frozenset[str]:
        if word not in known:
            known[word] = frozenset(analysis.terms(analysis.prepare(word)))
        return known[word]

    for match in WORD.finditer(text):
        word, first = match[0], match.start()
        if analysis.language in BIGRAMS and len(word) > 2 and CJK_RUN.fullmatch(word):
            for i in range(len(word) - 1):
                yield first + i, first + i + 2, terms(word[i : i + 2])
        elif len(word) > 1 or CJK_RUN.match(word):  # a lone letter ("U.S.") says little
            yield first, match.end(), terms(word)


def _idf(collection: Collection, terms: list[str]) -> dict[str, float]:
    """Return Lucene's idf (see `indexes.text.scoring`) of terms; 1 where the counts are not here."""
    index = collection.text
    if not isinstance(index, Bm25Index | FieldsIndex) or not terms:
        return dict.fromkeys(terms, 1.0)
    hashes = [term_hash(term) for term in terms]
    if isinstance(index, Bm25Index):
        segments = index.scorer().segments
        places = [find(segment, np.array(hashes, dtype=np.uint64)) for segment in segments]
        frequency = np.sum([stop - start for start, stop, _ in places], axis=0)
    else:
        frequency = np.array([len(index.holding([h])) for h in hashes])
    # Removed documents count among those that have a term until the index is compacted: never below 0.
    idf = np.maximum(lucene_idf(frequency, len(collection.rows.ids)), 0)
    return dict(zip(terms, idf.tolist(), strict=True))


def _pieces(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[str, bool]]:
    """Cut the text at spans in ascending order, which may overlap their neighbours."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    position = 0
    for start, end in joined:
        if start > position:
            yield text[position:start], False
        yield text[start:end], True
        position = end
    if position < len(text):
        yield text[position:], False
