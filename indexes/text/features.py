"""Features of a query and its candidates, for a learned ranker: from term counts, sentences, and word order.

They are computed by compiled code (features.c) or in plain Python (plain_features.py), whose results agree to 1e-6. A
term's *weight* is its share of the query's idf, as an integer multiple of 2^-32, so that sums do not depend on their
order; *coverage* is the weight of the query's distinct terms that occur in a candidate or a part of it. Stop words have
no weight, but count in runs.
"""

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes.dtypes import AnyArray, Float64Array, Int64Array
from indexes.text.analysis import Analysis
from indexes.text.scoring import lucene_idf
from indexes.text.vocabulary import term_hash

MOST_TERMS, MOST_WORDS, MOST_TOKENS = 256, 1024, 8192  # the same as in features.c
ONE = float(1 << 32)
PIECES = 1 << 12  # maximum number of pieces of queries whose terms are cached
CONTENT, CAPITAL, NUMBER = 1, 2, 4
ABSENT = 0xFFFFFFFF

# features of term counts
COUNTS = (
    "bm25", "bm25_flat", "bm25_steep", "coverage", "log_coverage", "likelihood", "density", "mass_share", "missing",
    "missing_share", "missing_idf", "missing_names", "missing_numbers", "names", "numbers", "heaviest_term", "length",
    "sentences", "mean_idf", "query_words", "query_terms", "query_idf", "query_highest_idf", "query_numbers",
)  # fmt: skip
# features of sentences and windows
WINDOWS = (
    "sentence", "second_sentence", "sentences_2", "sentences_4", "sentences_8", "tokens_25", "beginning", "end",
    "half_sentences", "third_sentences", "third_share", "sentence_position", "sentence_f",
)  # fmt: skip
# features of word order
PHRASES = ("run", "run_weight", "bigrams", "near_bigrams", "nearness", "run_share")
NAMES = (*COUNTS, *WINDOWS, *PHRASES)
OF_QUERY = ("query_words", "query_terms", "query_idf", "query_highest_idf", "query_numbers")


@dataclass(frozen=True)
class QueryWords:
    """A query: its words in order, as indexes into its distinct terms, and the terms' hashes and kinds.

    word: int32 [words]; hashes: uint64 [terms]; kind: uint8 [terms], a sum of CONTENT, CAPITAL and NUMBER.
    """

    word: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.uint64]
    kind: npt.NDArray[np.uint8]


class QueryReader:
    """Splits queries into terms. It caches the terms of recent pieces, which queries often share. Thread-safe."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._terms = functools.lru_cache(PIECES)(self._analyse)

    def read(self, text: str) -> QueryWords:
        """Return the words of a query's text; if all of them are stop words, they count as content."""
        kinds: dict[int, int] = {}
        word: list[int] = []
        for piece in self._analysis.pieces(self._analysis.prepare(text)):
            for term, found in self._terms(piece):
                if len(word) == MOST_WORDS or (term not in kinds and len(kinds) == MOST_TERMS):
                    continue
                kinds[term] = kinds.get(term, 0) | found
                word.append(term)
        order = {term: i for i, term in enumerate(kinds)}
        kind = np.array(list(kinds.values()), dtype=np.uint8)
        if not (kind & CONTENT).any():
            kind |= CONTENT
        hashes = np.array(list(kinds), dtype=np.uint64)
        return QueryWords(np.array([order[t] for t in word], dtype=np.int32), hashes, kind)

    def _analyse(self, piece: str) -> list[tuple[int, int]]:
        content = set(self._analysis.content_terms(piece))
        marks = CAPITAL * piece[0].isupper() + NUMBER * any(c.isdigit() for c in piece)
        terms = self._analysis.terms(piece)
        return [(term_hash(term), marks | (CONTENT if term in content else 0)) for term in terms]


@dataclass(frozen=True)
class Weights:
    """Statistics of a query's terms, each [terms]: weight (in units of 2^-32), idf, and probability in the index."""

    weight: Int64Array
    idf: Float64Array
    chance: Float64Array


def weigh(query: QueryWords, frequency: AnyArray, documents: int, tokens: int) -> Weights:
    """Return the weights of a query's terms; `frequency` (int [terms]) is the number of documents with each term."""
    idf = lucene_idf(frequency, documents)
    content = idf * ((query.kind & CONTENT) > 0)
    weight = np.round(content / max(float(content.sum()), 1e-9) * ONE).astype(np.int64)
    return Weights(weight, idf, (frequency + 0.5) / (tokens + 1.0))
