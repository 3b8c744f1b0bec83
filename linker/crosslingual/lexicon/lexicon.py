"""Lexicons: which terms translate which; from dictionaries and from identical strings (induction.py learns more)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from indexes.dtypes import BoolArray
from linker.crosslingual.lexicon.dictionaries import Pair
from linker.crosslingual.pages.languages import Language
from linker.crosslingual.pages.pages import Terms


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Links between the terms of two languages, with weights: (source term, target term) → weight > 0."""

    links: dict[tuple[str, str], float]

    def __len__(self) -> int:
        return len(self.links)

    def __or__(self, other: Lexicon) -> Lexicon:
        """Return both; the first one's weight counts where both have a link."""
        return Lexicon({**other.links, **self.links})

    def relation(self, source: Terms, target: Terms) -> csr_array:
        """Return the links as a matrix over two vocabularies: float32 CSR [v source, v target]."""
        known = [
            (source.position[f], target.position[e], weight)
            for (f, e), weight in self.links.items()
            if f in source.position and e in target.position
        ]
        rows, columns, weights = zip(*known, strict=True) if known else ((), (), ())
        shape = (len(source.vocabulary), len(target.vocabulary))
        return coo_array((np.array(weights, np.float32), (rows, columns)), shape=shape).tocsr()

    def known(self, source: Terms, target: Terms) -> tuple[BoolArray, BoolArray]:
        """Say which terms of two vocabularies have a translation at all, in these pages or not: flags [v] of each."""
        ours, theirs = {f for f, _ in self.links}, {e for _, e in self.links}
        return _flags(source, ours), _flags(target, theirs)


def _flags(terms: Terms, chosen: set[str]) -> BoolArray:
    return np.fromiter((term in chosen for term in terms.vocabulary), np.bool_, len(terms.vocabulary))


def from_pairs(pairs: Iterable[Pair], source: Language, target: Language) -> Lexicon:
    """Make a lexicon of a dictionary's pairs, each side reduced to the terms that pages have.

    A foreign side of several words has no term and is left out; of an English gloss each word counts.
    """
    links: dict[tuple[str, str], float] = {}
    for foreign, english in pairs:
        for word in source.headwords(foreign):
            links.update({(source.term(word), term): 1.0 for term in target.terms(english)})
    return Lexicon(links)


def identical(source: Terms, target: Terms, languages: tuple[Language, Language]) -> Lexicon:
    """Link terms that are spelt alike, as far as both languages' stems reach; Turkish ı stands for i."""
    length = min(side.stem for side in languages)
    spelt: dict[str, list[str]] = {}
    for term in target.vocabulary:
        spelt.setdefault(term[:length], []).append(term)
    turkish = languages[0].code in ("tr", "az")
    links = {}
    for term in source.vocabulary:
        for spelling in {term, term.replace("ı", "i")} if turkish else {term}:
            links.update({(term, other): 1.0 for other in spelt.get(spelling[:length], ())})
    return Lexicon(links)
