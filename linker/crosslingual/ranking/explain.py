"""Explaining links: the words of two pages that translate each other, and the strings they share, heaviest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float32Array
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.scoring.comparability import idf

Kind = Literal["same", "dictionary", "links"]
MOST = 8  # matches per link
# Least distinctness of a learned pair that counts as a reason: of those in the dictionaries of five languages, nine
# tenths were right, and of all learned pairs a tenth to a sixth.
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

    `induced`: the distinctness of these pairs, CSR [v source, v target]. Pairs that are hardly more distinct than their
    rivals help to rank pages, but explain nothing.
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
        """Return up to `most` matches of source page `row` and target page `column`, heaviest first, each word once.

        The weight of a match is the smaller idf of its two words.
        """
        x, y = self.evidence.source_terms, self.evidence.target_terms
        left, right = x.counts[[row]].indices, y.counts[[column]].indices
        translations = sp.coo_array(self._translations[left][:, right])
        sources, targets = left[translations.row], right[translations.col]
        weights = np.minimum(self._weights[0][sources], self._weights[1][targets])
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

    def _kind(self, source: int, target: int) -> Kind:
        if self.evidence.spelling[source, target]:
            return "same"
        return "dictionary" if self.evidence.known[source, target] else "links"

    @staticmethod
    def _forms(text: str, split: Callable[[str], list[str]]) -> dict[str, str]:
        """Return the first word of the text for each of its terms."""
        forms: dict[str, str] = {}
        for word in text.split():
            terms = split(word)
            if len(terms) == 1:
                forms.setdefault(terms[0], word.strip(".,;:!?()[]{}\"'«»„“”"))
        return forms
