"""All evidence about two collections: scores that need no links, prepared once, and scores learned from links."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int64Array
from linker.corpora.dictionaries import Pair
from linker.crosslingual.lexicon.induction import induce
from linker.crosslingual.lexicon.lexicon import from_pairs, identical
from linker.crosslingual.pages.languages import HAN, Language
from linker.crosslingual.pages.pages import Pages, Terms, count_terms
from linker.crosslingual.pages.surface import letter_grams, mark_grams
from linker.crosslingual.ranking.features import LIST
from linker.crosslingual.ranking.interface import Learned
from linker.crosslingual.ranking.knowledge import Knowledge, fingerprints, join, latent_space, word_pairs
from linker.crosslingual.ranking.pooled import TaskSetting, Taught, rankers
from linker.crosslingual.scoring.dense import fit_lsi
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.passages import Passages, match_passages, passages_of
from linker.crosslingual.scoring.products import Restrictable, Scores, WeightedProduct
from linker.crosslingual.scoring.retrieval import Pass, retrieve
from linker.crosslingual.scoring.scores import (
    common,
    cosine,
    coverage,
    synonyms,
    synonyms_backward,
    tfidf,
    translation_model,
)
from linker.crosslingual.scoring.sparse import ones
from linker.crosslingual.scoring.stages import Stages
from linker.scoring.ranking.calibrated_ranker import CalibratedRanker

COMPONENTS = 300
INDUCED_WEIGHT = 5.0  # weight of a word pair learned from links; dictionary pairs have weight 1
FEW = 20_000  # pages whose scores are kept: about 150 KB per page, with a dictionary of 100,000 words
LONGEST = 6  # characters of the longest Chinese word that is looked up
CHOOSING = (
    "strings.coverage", "dictionary.coverage", "bridge.coverage", "bridge.forward", "bridge.model",
    "lsi", "marks", "encoder",
)  # fmt: skip
PASSES = (
    Pass("letters", 20, 5),
    Pass("marks", 20, 5),
    Pass("encoder", 30, 5),
    Pass("bridge.coverage", 50, 10),
    Pass("bridge.model", 30, 5),
    Pass("lsi", 30, 5),
)


@dataclass(frozen=True, eq=False)
class AllEvidence:
    """Two collections, the word `pairs` of dictionaries, and the `vectors` of an encoder: float32 [n, d] and [m, d].

    `passes` retrieve pairs, which the scores named in `choosing` rank; `size`: candidates per page. `layout`: whether
    punctuation and line breaks are evidence, as they are for translations; `rankers`: pooled rankers in place of the
    package's, by name; `exclusive`: whether a target can be linked to one page only; `memory` and `begun`: a saved
    model's knowledge, and its ranker.
    """

    source: Pages
    target: Pages
    pairs: tuple[Pair, ...] = ()
    vectors: tuple[Float32Array, Float32Array] | None = None
    choosing: tuple[str, ...] = CHOOSING
    passes: tuple[Pass, ...] = PASSES
    size: int = LIST
    stages: Stages = field(default_factory=Stages)
    layout: bool = True
    rankers: Mapping[str, CalibratedRanker] | None = None
    exclusive: bool = True
    memory: Knowledge = field(default_factory=Knowledge)
    begun: CalibratedRanker | None = None

    @cached_property
    def target_language(self) -> Language:
        """The target's language with stems as long as the source's, so that identical strings have identical stems."""
        return replace(self.target.language, stem=self.source.language.stem)

    @cached_property
    def split(self) -> Callable[[str], list[str]]:
        """Function that splits source text into terms; Chinese becomes all dictionary words and all bigrams."""
        language = self.source.language
        if language.code != "zh":
            return language.terms
        known = frozenset(word for foreign, _ in self.pairs for word in language.headwords(foreign))
        return partial(overlapping, language=language, known=known)

    @cached_property
    def source_terms(self) -> Terms:
        """Counts of the source's terms: [n, v source]."""
        return self.memory.with_idf(count_terms(self.source.texts, self.split))

    @cached_property
    def target_terms(self) -> Terms:
        """Counts of the target's terms: [m, v target]."""
        return count_terms(self.target.texts, self.target_language.terms)

    @cached_property
    def spelling(self) -> sp.csr_array:
        """Translation matrix of identical strings: float32 CSR [v source, v target]."""
        languages = (self.source.language, self.target_language)
        lexicon = identical(self.source_terms, self.target_terms, languages)
        return lexicon.relation(self.source_terms, self.target_terms)

    @cached_property
    def known(self) -> sp.csr_array:
        """Translation matrix of identical strings and dictionaries, 0/1: float32 CSR [v source, v target]."""
        lexicon = from_pairs(self.pairs, self.source.language, self.target_language)
        both = self.spelling + lexicon.relation(self.source_terms, self.target_terms)
        return ones(sp.csr_array(both))

    @property
    def few(self) -> bool:
        """Whether there are so few pages that all scores fit into memory."""
        return len(self.source) + len(self.target) <= FEW

    @cached_property
    def letters(self) -> WeightedProduct:
        """Cosines of the pages' romanised letters: [n, m]."""
        return self._surface(letter_grams)

    @cached_property
    def marks(self) -> WeightedProduct:
        """Cosines of the pages' punctuation and numbers: [n, m]."""
        return self._surface(mark_grams)

    def _surface(self, split: Callable[[str], list[str]]) -> WeightedProduct:
        product = common(count_terms(self.source.texts, split), count_terms(self.target.texts, split))
        return product if self.few else product.on_disk()

    @cached_property
    def fixed(self) -> Scores:
        """Scores that need no links, each [n, m]."""
        x, y = self.source_terms, self.target_terms
        makers: dict[str, Callable[[], Restrictable]] = {
            "strings.coverage": lambda: coverage(x, y, self.spelling, keep=self.few),
            "strings.forward": lambda: synonyms(x, y, self.spelling),
            "letters": lambda: self.letters,
        }
        if self.layout:
            makers["marks"] = lambda: self.marks
        if self.pairs:
            makers["dictionary.coverage"] = lambda: coverage(x, y, self.known, keep=self.few)
            makers["dictionary.forward"] = lambda: synonyms(x, y, self.known)
            makers["dictionary.backward"] = lambda: synonyms_backward(x, y, self.known)
        if (vectors := self.vectors) is not None:
            makers["encoder"] = lambda: WeightedProduct(vectors[0], vectors[1].T)
        return Scores(makers, keep=self.few)

    @cached_property
    def shared(self) -> Graph:
        """The pairs retrieved by the fixed-score passes: independent of the links."""
        rows, columns = np.arange(len(self.source)), np.arange(len(self.target))
        keys = self.source.keys, self.target.keys
        return retrieve(self.fixed, self.passes, rows, columns, keys, self.stages, "shared")

    @cached_property
    def weights(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Tf-idf rows of both collections: float32 CSR [n, v source] and [m, v target]."""
        return tfidf(self.source_terms), tfidf(self.target_terms)

    @cached_property
    def passages(self) -> tuple[Passages, Passages]:
        """Passages of the source and of the target pages."""
        source, target = (
            pages.texts if self.layout else [" ".join(text.split()) for text in pages.texts]
            for pages in (self.source, self.target)
        )
        return (
            passages_of(source, self.split, self.source_terms),
            passages_of(target, self.target_language.terms, self.target_terms),
        )

    def start(self, taught: Taught) -> CalibratedRanker | None:
        """Return the saved ranker, or else the pooled one for this evidence, source of words and number of pages."""
        if self.begun:
            return self.begun
        setting = TaskSetting(taught, bool(self.pairs), self.vectors is not None, self.layout)
        return (self.rankers or rankers())[setting.name].of_size(len(self.target))

    def translations(self, links: Int64Array) -> tuple[sp.csr_array, sp.csr_array]:
        """Return translation matrices [v source, v target]: all pairs, and the learned ones with their distinctness."""
        x, y = self.source_terms, self.target_terms
        induced = induce(x.present[links[:, 0]], y.present[links[:, 1]])
        if self.memory.words:
            induced = induced.maximum(self.memory.relation(x, y))
        return sp.csr_array(self.known + INDUCED_WEIGHT * ones(induced), dtype=np.float32), induced

    def learn(self, links: Int64Array) -> Learned:
        """Return what is learned from `links` (int64 [l, 2], possibly empty): a lexicon and a latent space."""
        x, y = self.source_terms, self.target_terms
        translations, induced = self.translations(links)
        makers: dict[str, Callable[[], Restrictable]] = {
            "bridge.coverage": lambda: coverage(x, y, translations, keep=self.few),
            "bridge.forward": lambda: synonyms(x, y, translations),
            "bridge.backward": lambda: synonyms_backward(x, y, translations),
            "bridge.cosine": lambda: cosine(x, y, translations),
            "bridge.model": lambda: translation_model(x, y, translations),
        }
        if len(links) > 1 or self.memory.spaces:
            lsi = self.latent(links)
            makers["lsi"] = lambda: lsi
        matcher = match_passages(*self.passages, translations)
        return Learned(Scores(makers, keep=self.few), matcher, induced, translations, links)

    def latent(self, links: Int64Array) -> WeightedProduct:
        """Return the mean cosines [n, m] in the saved latent spaces and in that of `links` (int64 [l, 2])."""
        spaces = self.memory.latent(self.source_terms, self.target_terms)
        if len(links) > 1:
            lsi = fit_lsi(self.weights[0][links[:, 0]], self.weights[1][links[:, 1]], COMPONENTS)
            spaces.append((lsi.fold_source(self.weights[0]), lsi.fold_target(self.weights[1])))
        left, right = join(spaces)
        return WeightedProduct(left, right.T)

    def study(self, links: Int64Array, induced: sp.csr_array) -> Knowledge:
        """Return knowledge from `memory` and `links` (int64 [l, 2]); `induced`: the pairs of `translations`."""
        x, y = self.source_terms, self.target_terms
        spaces = self.memory.spaces
        if len(links) > 1:
            spaces = (*spaces, latent_space(links, x, y, self.weights, COMPONENTS))
        known = np.concatenate([self.memory.links, fingerprints(links, self.source, self.target)])
        words = {**self.memory.words, **word_pairs(induced, x, y)}
        often = dict(self.memory.often)
        for term, pages in zip(x.vocabulary, x.document_frequency.tolist(), strict=True):
            often[term] = often.get(term, 0) + pages
        pages = self.memory.pages + len(self.source)
        return Knowledge(words, spaces, self.memory.topics, known, often, pages)


def overlapping(text: str, language: Language, known: frozenset[str]) -> list[str]:
    """Return the terms in other scripts and, from runs of Chinese, all bigrams and `known` words, overlaps included."""
    terms: list[str] = []
    folded = language.fold(text)
    for word in HAN.split(folded):
        terms.extend(_plain(language).terms(word))
    for run in HAN.findall(folded):
        terms.extend(a + b for a, b in pairwise(run))
        ends = range(3, LONGEST + 1)
        terms.extend(
            w for i in range(len(run)) for n in ends if i + n <= len(run) and (w := run[i : i + n]) in known
        )
    return terms


def _plain(language: Language) -> Language:
    """Return a language with the same stems that does not segment."""
    return Language("und", language.stem)
