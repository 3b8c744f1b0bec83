"""Lexicons of term translations, from dictionaries and identical strings (induction.py learns them from links)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from indexes.dtypes import BoolArray
from linker.corpora.dictionaries import Pair
from linker.crosslingual.pages.languages import Language
from linker.crosslingual.pages.pages import Terms


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Weighted translations between terms: (source term, target term) → weight > 0."""

    links: dict[tuple[str, str], float]

    def __len__(self) -> int:
        return len(self.links)

    def __or__(self, other: Lexicon) -> Lexicon:
        """Return the union; if both contain a pair, the left operand's weight is kept."""
        return Lexicon({**other.links, **self.links})

    def relation(self, source: Terms, target: Terms) -> csr_array:
        """Return the translation matrix over two vocabularies: float32 CSR [v source, v target]."""
        entries = [
            (source.position[f], target.position[e], weight)
            for (f, e), weight in self.links.items()
            if f in source.position and e in target.position
        ]
        rows, columns, weights = zip(*entries, strict=True) if entries else ((), (), ())
        shape = (len(source.vocabulary), len(target.vocabulary))
        return coo_array((np.array(weights, np.float32), (rows, columns)), shape=shape).tocsr()

    def known(self, source: Terms, target: Terms) -> tuple[BoolArray, BoolArray]:
        """Return which terms of each vocabulary have any translation in the lexicon: bool [v source] and [v target]."""
        foreign, english = {f for f, _ in self.links}, {e for _, e in self.links}
        return _flags(source, foreign), _flags(target, english)


def _flags(terms: Terms, chosen: set[str]) -> BoolArray:
    return np.fromiter((term in chosen for term in terms.vocabulary), np.bool_, len(terms.vocabulary))


def from_pairs(pairs: Iterable[Pair], source: Language, target: Language) -> Lexicon:
    """Return a lexicon of a dictionary's pairs (foreign, English), reduced to terms.

    Foreign headwords of several words are left out; each word of an English gloss is a separate translation.
    """
    links: dict[tuple[str, str], float] = {}
    for foreign, english in pairs:
        for word in source.headwords(foreign):
            links.update({(source.term(word), term): 1.0 for term in target.translations(english)})
    return Lexicon(links)


def identical(source: Terms, target: Terms, languages: tuple[Language, Language]) -> Lexicon:
    """Return terms that are spelt alike, up to the shorter of the two stem lengths; Turkish ı also matches i.

    A language's stems also match the words that they are stems of, if the other language does not stem alike.
    """
    length = min(language.stem for language in languages)

    def spellings(term: str) -> dict[str, None]:
        forms = (term, *(language.term(term) for language in languages))
        return dict.fromkeys(form[:length] for form in forms)

    spelt: dict[str, list[str]] = {}
    for term in target.vocabulary:
        for spelling in spellings(term):
            spelt.setdefault(spelling, []).append(term)
    turkish = languages[0].code in ("tr", "az")
    links = {}
    for term in source.vocabulary:
        for form in {term, term.replace("ı", "i")} if turkish else {term}:
            for spelling in spellings(form):
                links.update({(term, other): 1.0 for other in spelt.get(spelling, ())})
    return Lexicon(links)
