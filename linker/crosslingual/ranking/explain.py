"""Explaining links: the words of two pages that translate each other, and the strings they share, heaviest first."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import AnyArray, Float32Array
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.scoring.comparability import idf
from linker.engine.evidence import Span, heaviest, sentences

Kind = Literal["same", "dictionary", "links"]
MOST = 8  # maximum matches shown per link
# Minimum distinctness of a learned pair that counts as a reason: of such pairs in the dictionaries of five languages,
# nine tenths were correct; of all learned pairs, a tenth to a sixth.
DISTINCT = 1.5


@dataclass(frozen=True, slots=True)
class WordMatch:
    """A word of the source page, the word of the target page that it matched, the kind of match, and its weight.

    `kind`: "same" for identical strings, such as names; "dictionary"; "links" for a pair learned from links.
    """

    source: str
    target: str
    kind: Kind
    weight: float


@dataclass(frozen=True, eq=False)
class Explainer:
    """Explains pairs of pages by the evidence and the word pairs that were learned from links.

    `induced`: the distinctness of these pairs, CSR [v source, v target]. Pairs hardly more distinct than their rivals
    help to rank pages, but explain nothing.
    """

    evidence: AllEvidence
    induced: sp.csr_array

    @cached_property
    def _translations(self) -> sp.csr_array:
        return sp.csr_array(self.evidence.known + (self.induced >= DISTINCT))

    @cached_property
    def _weights(self) -> tuple[Float32Array, Float32Array]:
        return idf(self.evidence.source_terms), idf(self.evidence.target_terms)

    def matches(self, row: int, column: int, most: int = MOST) -> list[WordMatch]:
        """Return up to `most` matches of two pages, heaviest (by the smaller idf) first, each word once."""
        x, y = self.evidence.source_terms, self.evidence.target_terms
        sources, targets, weights = self._matches(row, column)
        first = self._forms(self.evidence.source.texts[row], self.evidence.split)
        second = self._forms(self.evidence.target.texts[column], self.evidence.target_language.terms)
        matches: list[WordMatch] = []
        used: set[int] = set()
        for i in np.lexsort((targets, sources, -weights)).tolist():
            s, t = int(sources[i]), int(targets[i])
            if s not in used and ~t not in used and len(matches) < most:
                used |= {s, ~t}
                a, b = x.vocabulary[s], y.vocabulary[t]
                matches.append(
                    WordMatch(
                        first.get(a, a), second.get(b, b), self._kind(s, t), round(float(weights[i]), 3)
                    )
                )
        return matches

    def passage(self, row: int, column: int) -> Span | None:
        """Return where the sentence of the target page that the source page is about begins and ends, or None."""
        _, targets, found = self._matches(row, column)
        weights: dict[str, float] = {}
        for term, weight in zip(targets.tolist(), found.tolist(), strict=True):
            word = self.evidence.target_terms.vocabulary[term]
            weights[word] = max(weight, weights.get(word, 0.0))
        text = self.evidence.target.texts[column]
        spans = list(sentences(text))
        words = [self.evidence.target_language.terms(text[start:end]) for start, end in spans]
        length = np.array([len(of) for of in words])
        return heaviest(text, spans, [{*of} & weights.keys() for of in words], length, weights)

    def _matches(self, row: int, column: int) -> tuple[AnyArray, AnyArray, Float32Array]:
        """Return the words of both pages that match, by number, and the weight of each match, [m]."""
        left = self.evidence.source_terms.counts[[row]].indices
        right = self.evidence.target_terms.counts[[column]].indices
        translations = sp.coo_array(self._translations[left][:, right])
        sources, targets = left[translations.row], right[translations.col]
        return sources, targets, np.minimum(self._weights[0][sources], self._weights[1][targets])

    def _kind(self, source: int, target: int) -> Kind:
        if self.evidence.spelling[source, target]:
            return "same"
        return "dictionary" if self.evidence.known[source, target] else "links"

    @staticmethod
    def _forms(text: str, split: Callable[[str], list[str]]) -> dict[str, str]:
        forms: dict[str, str] = {}
        for word in text.split():
            terms = split(word)
            if len(terms) == 1:
                forms.setdefault(terms[0], word.strip(".,;:!?()[]{}\"'«»„“”"))
        return forms
