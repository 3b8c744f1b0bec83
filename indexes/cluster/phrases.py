"""Quoted phrases in an index on a cluster: the server finds the documents with their terms in sequence."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from indexes.filters import Filter, RowFilter
from indexes.interface import RowArray
from indexes.text.analysis import Analysis
from indexes.text.phrases import quoted


@dataclass(frozen=True, slots=True)
class PhraseFilter(Filter):
    """A filter for documents that also have `phrases`: the terms of each phrase, separated by spaces."""

    phrases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RowPhraseFilter(RowFilter):
    """A PhraseFilter that also names the rows with all phrases, for vectors in a directory."""

    phrases: tuple[str, ...] = ()


class ClusterPhrases:
    """Builds filters from quoted phrases, which an index's `analysis` turns into terms.

    For an index next to a directory of `count` rows, `holding` asks the server for the rows (int64 [n]) that have all
    phrases of a filter.
    """

    def __init__(
        self, analysis: Analysis, holding: Callable[[PhraseFilter], RowArray] | None = None, count: int = 0
    ) -> None:
        self._analysis, self._holding, self._count = analysis, holding, count

    def filter(self, text: str, where: Filter | None = None) -> Filter | None:
        """Return a filter for documents with every phrase quoted in `text`, or `where` if nothing is quoted.

        Phrases are parsed as in `PhraseSearch`. Raises BackendUnavailableError if `holding` does.
        """
        terms = (self._analysis.terms(self._analysis.prepare(part)) for part in quoted(text))
        phrases = tuple(" ".join(each) for each in terms if each)
        if not phrases:
            return where
        conditions = where.conditions if where else ()
        if self._holding is None:
            return PhraseFilter(conditions, phrases)
        rows = np.zeros(self._count, dtype=bool)
        rows[self._holding(PhraseFilter((), phrases))] = True
        return RowPhraseFilter(conditions, rows, phrases)
