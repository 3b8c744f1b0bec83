"""All that is known about two collections: what needs no links (prepared once), and what is learned from links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.lexicon.dictionaries import Pair
from linker.crosslingual.lexicon.induction import induce
from linker.crosslingual.lexicon.lexicon import from_pairs, identical
from linker.crosslingual.pages.languages import HAN, Language
from linker.crosslingual.pages.pages import Pages, Terms, count_terms
from linker.crosslingual.pages.surface import letter_grams, mark_grams
from linker.crosslingual.ranking.features import LIST
from linker.crosslingual.ranking.learning import Learned
from linker.crosslingual.ranking.pooled import Pooled, pooled
from linker.crosslingual.scoring.lsi import fit_lsi
from linker.crosslingual.scoring.passages import Passages, match_passages, passages_of
from linker.crosslingual.scoring.scores import (
    Restrictable,
    WeightedProduct,
    common,
    cosine,
    coverage,
    held,
    ones,
    synonyms,
    synonyms_backward,
    tfidf,
    translation_model,
)

COMPONENTS = 300
INDUCED_WEIGHT = 5.0  # of a pair that the links taught, where a dictionary's counts 1
HELD = 1 << 30  # bytes of link-free scores kept between folds
LONGEST = 6  # characters of a Chinese word that is looked up
CHOOSING = (
    "strings.coverage", "dictionary.coverage", "bridge.coverage", "bridge.forward", "bridge.model",
    "lsi", "marks", "encoder",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class AllEvidence:
    """Two collections, what dictionaries and spelling say; `vectors`: an encoder's, [n, d] and [m, d]."""

    source: Pages
    target: Pages
    pairs: tuple[Pair, ...] = ()
    vectors: tuple[Float32Array, Float32Array] | None = None
    choosing: tuple[str, ...] = CHOOSING
    size: int = LIST

    @cached_property
    def target_language(self) -> Language:
        """The target's language with stems as long as the source's, so that shared strings stay shared."""
        return replace(self.target.language, stem=self.source.language.stem)

    @cached_property
    def split(self) -> Callable[[str], list[str]]:
        """Cut source text into terms; Chinese without segmentation: every dictionary word and every bigram in it."""
        language = self.source.language
        if language.code != "zh":
            return language.terms
        known = frozenset(word for foreign, _ in self.pairs for word in language.headwords(foreign))
        return lambda text: overlapping(text, language, known)

    @cached_property
    def source_terms(self) -> Terms:
        """Counts of the source's terms."""
        return count_terms(self.source.texts, self.split)

    @cached_property
    def target_terms(self) -> Terms:
        """Counts of the target's terms."""
        return count_terms(self.target.texts, self.target_language.terms)

    @cached_property
    def spelling(self) -> sp.csr_array:
        """Translation matrix of identical strings."""
        languages = (self.source.language, self.target_language)
        found = identical(self.source_terms, self.target_terms, languages)
        return found.relation(self.source_terms, self.target_terms)

    @cached_property
    def known(self) -> sp.csr_array:
        """Translation matrix of what needs no links: identical strings and the dictionaries, all of weight 1."""
        lexicon = from_pairs(self.pairs, self.source.language, self.target_language)
        both = self.spelling + lexicon.relation(self.source_terms, self.target_terms)
        return ones(sp.csr_array(both))

    @cached_property
    def fixed(self) -> dict[str, Restrictable]:
        """Scores that need no links; held in memory if they are small enough, for every fold needs them."""
        x, y = self.source_terms, self.target_terms
        scores: dict[str, Restrictable] = {
            "strings.coverage": coverage(x, y, self.spelling),
            "strings.forward": synonyms(x, y, self.spelling),
            "letters": _surface(self.source.texts, self.target.texts, letter_grams),
            "marks": _surface(self.source.texts, self.target.texts, mark_grams),
        }
        if self.pairs:
            scores["dictionary.coverage"] = coverage(x, y, self.known)
            scores["dictionary.forward"] = synonyms(x, y, self.known)
            scores["dictionary.backward"] = synonyms_backward(x, y, self.known)
        if self.vectors is not None:
            scores["encoder"] = WeightedProduct(self.vectors[0], np.ascontiguousarray(self.vectors[1].T))
        return self.held(scores)

    def held(self, scores: dict[str, Restrictable]) -> dict[str, Restrictable]:
        """Compute scores of all pairs if they are small enough to keep."""
        if 4 * len(scores) * len(self.source) * len(self.target) > HELD:
            return scores
        return {name: held(score) for name, score in scores.items()}

    @cached_property
    def weights(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Tf-idf rows of both sides."""
        return tfidf(self.source_terms), tfidf(self.target_terms)

    @cached_property
    def passages(self) -> tuple[Passages, Passages]:
        """Both sides' pages cut into passages."""
        return (
            passages_of(self.source.texts, self.split, self.source_terms),
            passages_of(self.target.texts, self.target_language.terms, self.target_terms),
        )

    def start(self, links: bool) -> Pooled:
        """Return the ranker that other language pairs taught, for this kind of evidence."""
        return pooled(bool(self.pairs), links)

    def translations(self, links: Int64Array) -> tuple[sp.csr_array, sp.csr_array]:
        """Return what translates what, [v source, v target]: all that is known, and of that what the links taught."""
        rows, columns = links[:, 0], links[:, 1]
        if not len(links):
            return self.known, sp.csr_array(self.known * 0)
        induced = ones(induce(self.source_terms.present[rows], self.target_terms.present[columns]))
        return sp.csr_array(self.known + INDUCED_WEIGHT * induced, dtype=np.float32), induced

    def learn(self, links: Int64Array) -> Learned:
        """Induce a lexicon and a latent space from links, int64 [n, 2] of source and target rows; none is fine."""
        x, y = self.source_terms, self.target_terms
        rows, columns = links[:, 0], links[:, 1]
        translations, induced = self.translations(links)
        scores: dict[str, Restrictable] = {
            "bridge.coverage": coverage(x, y, translations),
            "bridge.forward": synonyms(x, y, translations),
            "bridge.backward": synonyms_backward(x, y, translations),
            "bridge.cosine": cosine(x, y, translations),
            "bridge.model": translation_model(x, y, translations),
        }
        if len(links) > 1:
            lsi = fit_lsi(self.weights[0][rows], self.weights[1][columns], COMPONENTS)
            left, right = lsi.fold_source(self.weights[0]), lsi.fold_target(self.weights[1])
            scores["lsi"] = WeightedProduct(left, np.ascontiguousarray(right.T))
        return Learned(scores, match_passages(*self.passages, x, y, translations), induced, translations)


def overlapping(text: str, language: Language, known: frozenset[str]) -> list[str]:
    """Return the words of other scripts, and of each Chinese run all bigrams and all known words, overlaps included."""
    found: list[str] = []
    folded = language.fold(text)
    for word in HAN.split(folded):
        found.extend(_plain(language).terms(word))
    for run in HAN.findall(folded):
        found.extend(a + b for a, b in pairwise(run))
        ends = range(3, LONGEST + 1)
        found.extend(
            w for i in range(len(run)) for n in ends if i + n <= len(run) and (w := run[i : i + n]) in known
        )
    return found


def _plain(language: Language) -> Language:
    """The same stems without the segmenter."""
    return Language("und", language.stem)


def _surface(
    source: Sequence[str], target: Sequence[str], split: Callable[[str], list[str]]
) -> WeightedProduct:
    return common(count_terms(source, split), count_terms(target, split))
