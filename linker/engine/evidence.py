"""Which words of a document speak for a link with a seed: the terms that BM25 finds in both, by what they weigh."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.marking import cut, words_in
from indexes.text.postings import find
from indexes.text.scoring import lucene_idf
from indexes.text.vocabulary import term_hash

if TYPE_CHECKING:
    from indexes.anywhere import AnyCollection

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


def evidence(collection: AnyCollection, seed: str, text: str) -> Evidence:
    """Return what the texts of a seed and of a document share in the terms of the index, without stop words.

    A term that occurs f times in the document weighs idf · f / (f + k1), BM25's weight without the document's length,
    which is the same for all terms. Where BM25 is on a server, every shared term weighs the same.
    """
    analysis = Analysis(collection.manifest.analysis)
    wanted = set(analysis.query_terms(seed))
    places = [(start, end, terms & wanted) for start, end, terms in words_in(analysis, text)]
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
    return Evidence(words, tuple(cut(text, spans)))


def rarest_words(collection: AnyCollection, text: str, count: int = RAREST) -> str:
    """Return the text's rarest words that another document has, too: a query for its copies, and a cheap one.

    A whole text as a query costs as much as its commonest words' posting lists. The text itself is returned where BM25
    is on a server, or no word is in another document.
    """
    analysis = Analysis(collection.manifest.analysis)
    written: dict[str, str] = {}
    for start, end, terms in words_in(analysis, text):
        for term in terms:
            written.setdefault(term, text[start:end])
    idf = _idf(collection, list(written))
    unique = float(lucene_idf(np.array(1), len(collection.rows.ids)))
    ranked = sorted((t for t in written if idf[t] < unique), key=lambda term: (-idf[term], term))
    words = dict.fromkeys(written[term] for term in ranked[:count])
    return " ".join(words) if words and isinstance(collection.text, Bm25Index | FieldsIndex) else text


def _idf(collection: AnyCollection, terms: list[str]) -> dict[str, float]:
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
