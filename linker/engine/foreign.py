"""Documents in the languages of an index's lexicons, translated word by word into the index's own language.

A document is in the language of the lexicon with the highest log odds for its beginning, if they reach SURE. Its words
are then translated one by one, as those of a query are (lexicons.py), and weighted as if the index's own documents
contained them. Without lexicons, or if all documents are in one language, nothing changes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.dtypes import AnyArray, Float32Array
from indexes.interface import Document, RowArray
from indexes.text.linear import TextVector
from indexes.text.queries import QueryTerms
from linker.engine.lexicons import SURE, QueryLexicon, Translating, likeliest, odds_of_each

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

AT_ONCE = 256  # documents translated together
BEGINNING = 600  # characters from which a document's language is detected
# Weight of a document's own words; chosen on topics other than those that benchmarks/review_across.py measures.
OWN = 0.4
TRANSLATED = (1 - OWN**2) ** 0.5  # weight of their translations: the squared weights sum to 1


class Foreign:
    """The rows in languages other than the index's, and the vectors of their translations, computed on first use."""

    def __init__(self, collection: AnyCollection, lexicons: Sequence[QueryLexicon]) -> None:
        self.collection, self.lexicons = collection, lexicons

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the index's own language, followed by the names of the lexicons' languages in order."""
        return (self.collection.manifest.analysis.language.capitalize(), *(one.name for one in self.lexicons))

    @functools.cached_property
    def languages(self) -> AnyArray:
        """The language of each row: the position of its lexicon, or −1 for the index's own language; int16 [rows]."""
        found = np.full(len(self.collection.rows.ids), -1, dtype=np.int16)
        if self.lexicons:
            odds = odds_of_each(
                self.lexicons, [text[:BEGINNING] for text in self.collection.documents.texts()]
            )
            found[:] = np.where(odds.max(axis=1) >= SURE, odds.argmax(axis=1), -1)
        return found

    @functools.cached_property
    def rows(self) -> RowArray:
        """The rows in other languages, ascending; int64 [n]."""
        return np.flatnonzero(self.languages >= 0).astype(np.int64)

    def _language(self, text: str) -> int:
        number, odds = likeliest(self.lexicons, text[:BEGINNING])
        return number if odds >= SURE else -1

    def reading(self, document: Document) -> tuple[str, str]:
        """Return a document's language, and its text translated word by word; both empty if it needs no translation."""
        number = self._language(document.full_text)
        if number < 0:
            return "", ""
        return self.lexicons[number].name, self.lexicons[number].translated(document.text)

    def vector(self, document: Document) -> TextVector:
        """Return the vector of a document's words and, if it is foreign, their translations; it need not be indexed."""
        own = self.collection.linear.vector(document)
        number = self._language(document.full_text)
        if number < 0:
            return own
        _, translated = self.collection.linear.vectors([document], self._analyses[number])
        terms = np.concatenate([own.terms, translated.terms])
        values = np.concatenate([OWN * own.values, TRANSLATED * translated.values])
        terms, places = np.unique(terms, return_inverse=True)
        return TextVector(terms, np.bincount(places, values, len(terms)).astype(np.float32))

    @functools.cached_property
    def _analyses(self) -> list[QueryTerms]:
        """What turns texts into the terms of their translations, by language."""
        settings = self.collection.manifest.analysis
        return [QueryTerms(Translating(lexicon, settings)) for lexicon in self.lexicons]

    def scores(self, terms: AnyArray, weights: AnyArray) -> Float32Array:
        """Return the score of every row under these term weights, like `LinearText.scores`, but with translations."""
        scores = self.collection.linear.scores(terms, weights)
        if len(self.rows):
            vocabulary, matrix = self._matrix
            dense = np.zeros(len(vocabulary), dtype=np.float32)
            _, columns, positions = np.intersect1d(vocabulary, terms, assume_unique=True, return_indices=True)
            dense[columns] = weights[positions]
            scores[self.rows] = OWN * scores[self.rows] + TRANSLATED * (matrix @ dense)
        return scores

    @functools.cached_property
    def _matrix(self) -> tuple[AnyArray, csr_matrix]:
        """The terms of all translations, uint64 [terms] ascending, and the translations, float32 [rows, terms]."""
        from scipy.sparse import csr_matrix

        documents, languages = self.collection.documents, self.languages[self.rows]
        order, counts, parts = np.argsort(languages, kind="stable"), list[AnyArray](), list[TextVector]()
        for number, analysis in enumerate(self._analyses):
            chosen = self.rows[order[languages[order] == number]].tolist()
            for start in range(0, len(chosen), AT_ONCE):
                part = [documents[row] for row in chosen[start : start + AT_ONCE]]
                count, vectors = self.collection.linear.vectors(part, analysis)
                counts.append(count)
                parts.append(vectors)
        terms, columns = np.unique(np.concatenate([part.terms for part in parts]), return_inverse=True)
        rows, values = (
            np.repeat(order, np.concatenate(counts)),
            np.concatenate([part.values for part in parts]),
        )
        return terms, csr_matrix((values, (rows, columns)), shape=(len(order), len(terms)))
