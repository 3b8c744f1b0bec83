"""The AUT cascade (BUCC 2015): CL-LSI generates candidates; topics, names and translated words are ranking features.

Everything is learned from linked pages, the features out of fold. A dictionary is optional and adds word pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.interface import Learned
from linker.crosslingual.ranking.knowledge import Knowledge, RowTopics
from linker.crosslingual.ranking.pooled import Taught
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.names import shared_names
from linker.crosslingual.scoring.products import Restrictable, Scores
from linker.crosslingual.scoring.retrieval import Pass
from linker.crosslingual.scoring.scores import cosine, coverage, one_way
from linker.crosslingual.scoring.topics import fit_topics, jensen_shannon, sample_topics
from linker.scoring.ranking.calibrated_ranker import CalibratedRanker

CANDIDATES = 200
TOPICS = 50
TOPIC_ROUNDS = 25
SWEEPS = 200  # sweeps of Gibbs sampling
# Topics ignore words in more than this share of the linked pages, and words in fewer than this many.
COMMON, RARE = 0.3, 3


@dataclass(frozen=True, eq=False)
class CascadeEvidence(AllEvidence):
    """The evidence of the cascade: scores of its own, over the same terms and lexicon."""

    choosing: tuple[str, ...] = ("lsi",)
    passes: tuple[Pass, ...] = (Pass("lsi", CANDIDATES, 20),)
    size: int = CANDIDATES
    topics: int = TOPICS
    learning: Literal["variational", "gibbs"] = "variational"  # how the topics are learned
    seed: int = 0  # random seed of Gibbs sampling

    @cached_property
    def fixed(self) -> Scores:
        """Scores of shared names, numbers and years, by name: each [n, m]."""
        scores = shared_names(self.source, self.target)
        return Scores({name: partial(scores.__getitem__, name) for name in scores})

    @cached_property
    def shared(self) -> Graph:
        """An empty graph, because the pairs that the cascade retrieves depend on the links."""
        nothing = np.empty(0, np.int64)
        return Graph(nothing, nothing, (len(self.source), len(self.target)))

    def start(self, taught: Taught) -> CalibratedRanker | None:
        """Return the saved ranker, if there is one; there is no pooled ranker for the cascade."""
        return self.begun

    def learn(self, links: Int64Array) -> Learned:
        """Return what is learned from `links` (int64 [l, 2]): the latent space, the lexicon and the topics."""
        x, y = self.source_terms, self.target_terms
        translations, induced = self.translations(links)
        lsi = self.latent(links)
        makers: dict[str, Callable[[], Restrictable]] = {
            "lsi": lambda: lsi,
            "words.idf": lambda: coverage(x, y, translations),
            "words.forward": lambda: one_way(x, y, translations),
            "words.backward": lambda: one_way(y, x, sp.csr_array(translations.T)).transpose(),
            "words.cosine": lambda: cosine(x, y, translations),
        }
        source, target = self._topics(links).mixtures(x, y)
        topics = TopicMatcher(source, target, _lengths(self.source), _lengths(self.target))
        return Learned(Scores(makers, keep=self.few), topics, induced, translations, links)

    def study(self, links: Int64Array, induced: sp.csr_array) -> Knowledge:
        """Return what was learned from `links` (int64 [l, 2]) and a model, like `AllEvidence.study`, with topics."""
        return replace(super().study(links, induced), topics=self._topics(links))

    def _topics(self, links: Int64Array) -> RowTopics:
        if self.memory.topics:
            return self.memory.topics
        terms, counts = [], []
        for pages, linked in ((self.source_terms, links[:, 0]), (self.target_terms, links[:, 1])):
            often = np.bincount(pages.counts[linked].indices, minlength=pages.counts.shape[1])
            columns = np.flatnonzero((often >= RARE) & (often <= COMMON * len(linked)))
            terms.append(tuple(pages.vocabulary[column] for column in columns.tolist()))
            counts.append(sp.csr_array(pages.counts[linked][:, columns]))
        size = min(self.topics, max(2, len(links) // 4))
        if self.learning == "gibbs":
            model = sample_topics(tuple(counts), size, rounds=SWEEPS, seed=self.seed)
        else:
            model = fit_topics(tuple(counts), size, rounds=TOPIC_ROUNDS)
        return RowTopics((terms[0], terms[1]), model)


@dataclass(frozen=True, eq=False)
class TopicMatcher:
    """Scores by topic mixtures `source` [n, k], `target` [m, k] and log lengths, [n] and [m]."""

    source: npt.NDArray[np.float64]
    target: npt.NDArray[np.float64]
    source_length: Float32Array
    target_length: Float32Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        return "topics", "length"

    def features(self, rows: Int64Array, candidates: Int64Array) -> Float32Array:
        """Return float32 [n, c, 2] for the source pages `rows` [n] and their `candidates` [n, c].

        They are the negative Jensen–Shannon divergence of the mixtures, and the negative absolute difference of the
        log length ratio from its usual value.
        """
        out = np.empty((*candidates.shape, 2), np.float32)
        usual = np.median(self.source_length) - np.median(self.target_length)
        for i, (row, columns) in enumerate(zip(rows.tolist(), candidates, strict=True)):
            out[i, :, 0] = -jensen_shannon(self.source[row][None], self.target[columns])
            out[i, :, 1] = -np.abs(self.source_length[row] - self.target_length[columns] - usual)
        return out


def _lengths(pages: Pages) -> Float32Array:
    return np.log1p(np.array([len(text) for text in pages.texts], np.float32))
