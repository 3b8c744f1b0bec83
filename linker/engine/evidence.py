"""Evidence in a document for a link with a seed: the index terms in both, and the sentence richest in them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from indexes.dtypes import Float64Array
from indexes.showing import Pieces
from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.forward import END
from indexes.text.marking import cut, excerpt, part, words_in
from indexes.text.postings import find, frequencies
from indexes.text.scoring import lucene_idf
from indexes.text.vocabulary import term_hash

if TYPE_CHECKING:
    from indexes.anywhere import AnyCollection

RAREST = 24  # maximum number of words of a query for near-duplicates
MARKED = 12  # maximum number of terms marked and listed, so that the weightiest stand out
# Chosen on development sets by `benchmarks.passages`: how much the words of a neighbouring sentence count, and how much
# a sentence's length lowers its weight, both from 0 to 1.
AROUND, BY_LENGTH = 0.5, 0.15
LONGEST = 400  # maximum number of characters in a passage

Span = tuple[int, int]
Place = tuple[int, int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class SharedWords:
    """The words that a document shares with a seed; `words`: the weightiest, each with its share of the total weight.

    They are written as in the document. `pieces`: the document's text split into pieces, each with a flag that is set
    for these words. `title`: the same for the title. `passage`: start and end, in the text, of the sentence that the
    seed is most likely about; None if no word of the text is shared.
    """

    words: tuple[tuple[str, float], ...]
    pieces: Pieces
    title: Pieces = ()
    passage: Span | None = None

    @property
    def parts(self) -> tuple[Pieces, Pieces, Pieces]:
        """The pieces before, within and after the passage; without a passage, all are before it."""
        end = sum(len(piece) for piece, _ in self.pieces)
        start, stop = self.passage or (end, end)
        edges = itertools.pairwise((0, start, stop, end))
        before, inside, after = (part(self.pieces, a, b) for a, b in edges)
        return before, inside, after

    def excerpt(self, length: int) -> SharedWords:
        """Return the same evidence with the text cut to about `length` characters around the passage."""
        start, stop = self.passage or (0, 0)
        pieces, shift = excerpt(self.pieces, length, start)
        shown = sum(len(piece) for piece, _ in pieces)
        passage = (start - shift, min(stop - shift, shown)) if self.passage else None
        return SharedWords(self.words, pieces, self.title, passage)


def query_terms(collection: AnyCollection, text: str) -> frozenset[str]:
    """Return the index terms of a text without stop words."""
    return frozenset(Analysis(collection.manifest.analysis).query_terms(text))


def evidence(collection: AnyCollection, seed: str | Set[str], text: str, title: str = "") -> SharedWords:
    """Return the evidence shared by the texts of a seed and a document, in index terms without stop words.

    For many documents, pass the seed's `query_terms` instead of its text, which is then analysed only once.

    A term that occurs f times in the document weighs idf · f / (f + k1), BM25's weight without the document's length,
    which is the same for all terms. If BM25 is on a server, every shared term weighs the same.
    """
    analysis = Analysis(collection.manifest.analysis)
    wanted = query_terms(collection, seed) if isinstance(seed, str) else seed
    heading, body = (
        [(start, end, terms & wanted) for start, end, terms in words_in(analysis, of)] for of in (title, text)
    )
    counts = Counter(term for _, _, terms in (*heading, *body) for term in terms)
    k1, idf = collection.manifest.bm25.k1, _idf(collection, list(counts))
    weights = {t: idf[t] * counts[t] / (counts[t] + k1) for t in counts}
    total = sum(weights.values()) or 1.0
    written: dict[str, str] = {}
    for of, places in ((title, heading), (text, body)):
        for start, end, terms in places:
            for term in terms:
                written.setdefault(term, of[start:end])
    ranked = sorted(weights, key=lambda term: (-weights[term], term))[:MARKED]
    words = tuple((written[term], weights[term] / total) for term in ranked)
    heavy = frozenset(ranked)

    def pieces(text: str, places: Sequence[Place]) -> Pieces:
        return cut(text, ((start, end) for start, end, terms in places if terms & heavy))

    return SharedWords(words, pieces(text, body), pieces(title, heading), _passage(text, body, idf))


def _passage(text: str, places: Sequence[Place], idf: Mapping[str, float]) -> Span | None:
    """Return the heaviest sentence of a text; `places`: start, end and shared terms of each of its words."""
    spans = list(sentences(text))
    starts = np.array([start for start, _ in spans])
    shared: list[set[str]] = [set() for _ in spans]
    length = np.zeros(len(spans))
    for start, _, terms in places:
        at = int(np.searchsorted(starts, start, side="right")) - 1
        shared[at] |= terms
        length[at] += 1
    # A term weighs more if it is in few documents, and in few sentences of this document.
    counts = Counter(itertools.chain.from_iterable(shared))
    rarity = lucene_idf(np.array([*counts.values()]), len(spans)).tolist()
    weights = {term: idf[term] + within for term, within in zip(counts, rarity, strict=True)}
    return heaviest(text, spans, shared, length, weights)


def heaviest(
    text: str,
    spans: Sequence[Span],
    shared: Sequence[Set[str]],
    length: Float64Array,
    weights: Mapping[str, float],
) -> Span | None:
    """Return the sentence whose shared terms (`shared`) weigh the most; None if no sentence has any.

    Each term counts once; terms that occur only in a neighbouring sentence of the same line count in part; the longer
    the sentence, the less it weighs. `spans`: start and end of the n sentences of a text; `length` [n]: their number of
    words.
    """
    if not any(shared):
        return None
    long = 1 - BY_LENGTH + BY_LENGTH * length / length.mean()
    joined = ["\n" not in text[a:b] for (_, a), (b, _) in itertools.pairwise(spans)]
    before = [set(), *(near if same else set() for near, same in zip(shared, joined, strict=False))]
    after = [*(near if same else set() for near, same in zip(shared[1:], joined, strict=True)), set()]
    around = [a | b for a, b in zip(before, after, strict=True)]
    weight = [
        sum(weights[t] for t in terms) + AROUND * sum(weights[t] for t in near - terms) if terms else 0.0
        for terms, near in zip(shared, around, strict=True)
    ]
    return spans[int(np.argmax(np.array(weight) / long))]


def passage_columns(text: str, passage: Span | None) -> dict[str, str | int | None]:
    """Return a passage as table columns: `passage` (its text) and `offset` (its start in `text`); None without one."""
    if passage is None:
        return {"passage": None, "offset": None}
    return {"passage": text[slice(*passage)], "offset": passage[0]}


def sentences(text: str) -> Iterator[Span]:
    """Yield the start and end of each sentence of a text, without white space around it; long sentences are split."""
    for start, end in itertools.pairwise([0, *(match.end() for match in END.finditer(text)), len(text)]):
        at = start
        while at < end:
            stop = end
            if end - at > LONGEST:
                stop = text.rfind(" ", at, at + LONGEST) + 1 or at + LONGEST
            if inside := text[at:stop].strip():
                first = text.index(inside, at)
                yield first, first + len(inside)
            at = stop


def rarest_words(collection: AnyCollection, text: str) -> str:
    """Return the text's rarest words that another document also has: a cheap query for its copies.

    The cost of a whole text as a query is dominated by the posting lists of its most common words. The text itself is
    returned if BM25 is on a server, or no other document contains any of its words.
    """
    analysis = Analysis(collection.manifest.analysis)
    written: dict[str, str] = {}
    for start, end, terms in words_in(analysis, text):
        for term in terms:
            written.setdefault(term, text[start:end])
    idf = _idf(collection, list(written))
    unique = float(lucene_idf(np.array(1), len(collection.rows.ids)))
    ranked = sorted((t for t in written if idf[t] < unique), key=lambda term: (-idf[term], term))
    words = dict.fromkeys(written[term] for term in ranked[:RAREST])
    return " ".join(words) if words and isinstance(collection.text, Bm25Index | FieldsIndex) else text


def _idf(collection: AnyCollection, terms: list[str]) -> dict[str, float]:
    """Return Lucene's idf (see `indexes.text.scoring`) of terms; 1 if the document frequencies are on a server."""
    index = collection.text
    if not isinstance(index, Bm25Index | FieldsIndex) or not terms:
        return dict.fromkeys(terms, 1.0)
    hashes = [term_hash(term) for term in terms]
    if isinstance(index, Bm25Index):
        frequency = frequencies(find(index.scorer().segments, np.array(hashes, dtype=np.uint64)))
    else:
        frequency = np.array([len(index.holding([h])) for h in hashes])
    # Until compaction, removed documents still count towards document frequencies, which could make an idf negative.
    idf = np.maximum(lucene_idf(frequency, len(collection.rows.ids)), 0)
    return dict(zip(terms, idf.tolist(), strict=True))
