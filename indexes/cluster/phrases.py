"""Phrases in quotes on a cluster, which finds the documents that have their terms one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from indexes.filters import Filter
from indexes.text.analysis import Analysis
from indexes.text.phrases import quoted


@dataclass(frozen=True, slots=True)
class PhraseFilter(Filter):
    """A filter for documents that have `phrases`, too: the terms of each, separated by blanks."""

    phrases: tuple[str, ...] = ()


class ClusterPhrases:
    """Makes filters of quoted words, which an index's `analysis` makes terms of."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def filter(self, text: str, where: Filter | None = None) -> Filter | None:
        """Return a filter for documents with every phrase that is quoted in `text`; `where` if there is none.

        Phrases are read as `PhraseSearch` reads them.
        """
        terms = (self._analysis.terms(self._analysis.prepare(part)) for part in quoted(text))
        found = tuple(" ".join(each) for each in terms if each)
        return PhraseFilter(where.conditions if where else (), found) if found else where
