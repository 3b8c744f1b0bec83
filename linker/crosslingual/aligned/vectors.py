"""Vectors of lines or sentences in which both languages can be compared: an encoder's, or translated words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from linker.corpora.dictionaries import Pair
from linker.crosslingual.lexicon.lexicon import from_pairs, identical
from linker.crosslingual.pages.languages import Language
from linker.crosslingual.pages.pages import Pages, Terms, count_terms
from linker.crosslingual.scoring.comparability import idf
from linker.crosslingual.scoring.passage_vectors import PassageVectors, encode_parts, extents
from linker.crosslingual.scoring.sparse import ones, scale_columns, stochastic, unit_rows
from linker.encoders.interface import Encoder

Parts = Sequence[Sequence[str]]


class Vectoriser(Protocol):
    """Turns the lines or sentences of pages into vectors in one space; the properties depend on the kind.

    `skip`: the cost of leaving a passage out, relative to 1 for linking two unrelated passages; `length`: the share
    by which agreeing lengths reduce a link's cost; `slope`: how reliable the costs are as log odds of a pair.
    """

    @property
    def skip(self) -> float:
        """Cost of leaving a passage out."""
        ...

    @property
    def length(self) -> float:
        """Share by which agreeing lengths reduce a link's cost."""
        ...

    @property
    def slope(self) -> float:
        """Factor of the log odds that a pair is right."""
        ...

    def vectors(self, source: Parts, target: Parts) -> tuple[PassageVectors, PassageVectors]:
        """Return the vectors of split source pages and of split target pages."""
        ...


@dataclass(frozen=True, eq=False)
class ByEncoder:
    """Vectors of a multilingual encoder."""

    encoder: Encoder
    skip: float = 0.4
    length: float = 0.25
    slope: float = 1.7

    def vectors(self, source: Parts, target: Parts) -> tuple[PassageVectors, PassageVectors]:
        """Return the encoder's vectors."""
        return encode_parts(self.encoder, source), encode_parts(self.encoder, target)


@dataclass(frozen=True, eq=False)
class ByWords:
    """Idf-weighted words of two collections, translated by a dictionary's `pairs` and identical strings.

    `taught`: further pairs, the non-zero cells of a CSR matrix [v source, v target].
    """

    source: Pages
    target: Pages
    pairs: tuple[Pair, ...] = ()
    taught: sp.csr_array | None = None

    @property
    def skip(self) -> float:
        """Cost of leaving a passage out."""
        return 0.5 if self._translates else 0.55

    @property
    def _translates(self) -> bool:
        return bool(self.pairs) or (self.taught is not None and self.taught.nnz > 0)

    @property
    def length(self) -> float:
        """Share by which agreeing lengths reduce a link's cost: more without a dictionary, since little else helps."""
        return 0.25 if self._translates else 0.5

    @property
    def slope(self) -> float:
        """Factor of the log odds: less without a dictionary, since words fit the passages they are learned from."""
        return 1.7 if self.pairs else 1.3

    @cached_property
    def language(self) -> Language:
        """The target's language with stems as long as the source's, so that identical strings have identical stems."""
        return replace(self.target.language, stem=self.source.language.stem)

    @cached_property
    def terms(self) -> tuple[Terms, Terms]:
        """Term counts of the two collections, which give the vocabularies and the idf."""
        return self.source.terms, count_terms(self.target.texts, self.language.terms)

    @cached_property
    def translations(self) -> sp.csr_array:
        """Each source term's translations, which share its weight: float32 CSR [v source, v target]."""
        languages = (self.source.language, self.language)
        lexicon = from_pairs(self.pairs, *languages) | identical(*self.terms, languages)
        known = lexicon.relation(*self.terms)
        return stochastic(known if self.taught is None else known + ones(self.taught))

    def vectors(self, source: Parts, target: Parts) -> tuple[PassageVectors, PassageVectors]:
        """Return the translated words of the source and the words of the target, weighted by idf."""
        weights = idf(self.terms[1])
        translated = sp.csr_array(
            present(_one_by_one(source), self.source.language, self.terms[0]) @ self.translations,
            dtype=np.float32,
        )
        english = present(_one_by_one(target), self.language, self.terms[1])
        return (
            PassageVectors(unit_rows(scale_columns(translated, weights)), extents(source)),
            PassageVectors(unit_rows(scale_columns(english, weights)), extents(target)),
        )


def _one_by_one(parts: Parts) -> list[tuple[str]]:
    return [(text,) for part in parts for text in part]


def present(passages: Parts, language: Language, terms: Terms) -> sp.csr_array:
    """Return which passages (of one or several texts each) contain which terms: 0/1 float32 CSR [passages, v]."""
    rows = [_columns((w for text in texts for w in language.terms(text)), terms) for texts in passages]
    ends = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64)))
    columns = np.array([column for row in rows for column in row], np.int64)
    shape = (len(rows), len(terms.vocabulary))
    return sp.csr_array((np.ones(len(columns), np.float32), columns, ends), shape=shape)


def _columns(words: Iterable[str], terms: Terms) -> list[int]:
    return sorted({terms.position[word] for word in words if word in terms.position})
