"""The terms in order of some documents of an index on a cluster, with the term statistics of all of its documents."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from indexes.cluster.rescoring import StatisticsCache
from indexes.dtypes import AnyArray, Float32Array
from indexes.interface import Document, RowArray
from indexes.text.analysis import Analysis
from indexes.text.features import QueryWords
from indexes.text.forward_index import ForwardIndex, Found
from indexes.text.parameters import AnalysisSettings
from indexes.text.vocabulary import term_hash


class CandidateTerms(ForwardIndex):
    """Describes documents as a directory's forward index does; removed documents do not count in the statistics."""

    def __init__(
        self,
        settings: AnalysisSettings,
        rows: RowArray,
        documents: Sequence[Document],
        queries: Sequence[str],
        statistics: StatisticsCache,
    ) -> None:
        """`documents` are those in `rows`, int64 [n], ascending; they can be described for these `queries` only.

        Raises BackendUnavailableError, IndexesError.
        """
        super().__init__(settings)
        self._rows = rows
        self.add([document.full_text for document in documents])
        known = statistics.of(list(dict.fromkeys([*self._vocabulary.terms, *_terms(settings, queries)])))
        self.commit()
        self.total = known.total.number, known.total.tokens
        self._known = {term_hash(term): count for term, count in known.frequencies.items()}

    def describe(self, query: QueryWords, rows: AnyArray) -> Float32Array:
        """Return the features of a query and the candidates `rows` (int64 [n]), as in a directory."""
        return super().describe(query, np.searchsorted(self._rows, rows))

    def _frequencies(self, hashes: AnyArray, found: Sequence[Found] | None = None) -> AnyArray:
        return np.array([self._known[term] for term in hashes.tolist()], dtype=np.int64)


def _terms(settings: AnalysisSettings, queries: Sequence[str]) -> Iterator[str]:
    """Yield the terms of queries, stop words included."""
    analysis = Analysis(settings)
    pieces = (analysis.pieces(analysis.prepare(text)) for text in queries)
    for piece in dict.fromkeys(itertools.chain.from_iterable(pieces)):
        yield from analysis.terms(piece)
