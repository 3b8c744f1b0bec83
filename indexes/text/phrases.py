"""Quoted phrases: find the documents that have the quoted words in sequence."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from indexes.interface import Filter, RowArray, RowFilter
from indexes.rows import Rows
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.forward_index import ForwardIndex, with_phrase
from indexes.text.vocabulary import TermVocabulary, term_hash

TEXTS = 256  # texts that are analysed at a time
QUOTED = re.compile(r"“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»")
STRAIGHT = re.compile(r'"([^"]*)"|' + QUOTED.pattern)


def quoted(text: str) -> list[str]:
    """Return the parts of a text quoted by "…", “…”, „…“ or «…», in order.

    A mark without its partner is plain text; so are all straight quotes (") if their number is odd, since it is unclear
    which of them belong together.
    """
    pattern = QUOTED if text.count('"') % 2 else STRAIGHT
    return [next(part for part in match.groups() if part is not None) for match in pattern.finditer(text)]


class PhraseSearch:
    """Finds the rows that have phrases: the postings yield candidates, each of which is then checked."""

    def __init__(
        self,
        index: Bm25Index | FieldsIndex,
        rows: Rows,
        forward: ForwardIndex | None,
        text_of: Callable[[int], str],
    ) -> None:
        """`forward` has the terms of the rows in order; without it, candidates' texts (`text_of`) are analysed."""
        self._index, self._rows, self._forward, self._text_of = index, rows, forward, text_of
        self._analysis = index.analysis

    def filter(self, text: str, where: Filter | None = None) -> Filter | None:
        """Return a filter for documents with every phrase quoted in `text`, or `where` if nothing is quoted.

        A phrase is analysed like documents: inflections match, and so do stop words unless the index drops them.
        Quotes without a term are ignored. Raises DamagedError, and IndexesError if the index is closed.
        """
        matches = [self._having(part, terms) for part in quoted(text) if (terms := self._terms(part))]
        if not matches:
            return where
        mask = np.ones(len(self._rows.ids), dtype=bool)
        for rows in matches:
            having = np.zeros_like(mask)
            having[rows] = True
            mask &= having
        return RowFilter(where.conditions if where else (), mask)

    def _terms(self, text: str) -> list[str]:
        return self._analysis.terms(self._analysis.prepare(text))

    def _having(self, phrase: str, terms: Sequence[str]) -> RowArray:
        hashes = [term_hash(term) for term in terms]
        rows = self._index.holding(list(dict.fromkeys(hashes)))
        if self._forward is not None:
            return self._forward.having(np.array(hashes, dtype=np.uint64), rows)
        alive = self._rows.mask()
        live = rows if alive is None else rows[alive[rows]]
        found, vocabulary = [live[:0]], TermVocabulary(self._analysis)
        for start in range(0, len(live), TEXTS):
            if vocabulary.full():
                vocabulary = TermVocabulary(self._analysis)
            found.append(self._among(live[start : start + TEXTS], phrase, vocabulary))
        return np.concatenate(found)

    def _among(self, rows: RowArray, phrase: str, vocabulary: TermVocabulary) -> RowArray:
        """Return those of `rows` (int64 [n]) whose texts have the terms of a phrase in sequence."""
        tokens, lengths = vocabulary.numbers([phrase, *map(self._text_of, rows.tolist())])
        wanted, others = np.split(tokens, lengths[:1])
        rarest = int(np.bincount(tokens)[wanted].argmin())
        return rows[with_phrase(others, np.cumsum(lengths) - lengths[0], wanted, rarest)]
