"""Quoted phrases in an index on a cluster: the server finds the documents with their terms in sequence."""

from __future__ import annotations

from dataclasses import dataclass

from indexes.filters import Filter
from indexes.text.analysis import Analysis
from indexes.text.phrases import quoted


@dataclass(frozen=True, slots=True)
class PhraseFilter(Filter):
    """A filter for documents that also have `phrases`: the terms of each phrase, separated by blanks."""

    phrases: tuple[str, ...] = ()


class ClusterPhrases:
    """Makes filters from quoted words, which an index's `analysis` turns into terms."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def filter(self, text: str, where: Filter | None = None) -> Filter | None:
        """Return a filter for documents with every phrase that is quoted in `text`; `where` if there is none.

        Phrases are parsed as in `PhraseSearch`.
        """
        terms = (self._analysis.terms(self._analysis.prepare(part)) for part in quoted(text))
        found = tuple(" ".join(each) for each in terms if each)
        return PhraseFilter(where.conditions if where else (), found) if found else where
