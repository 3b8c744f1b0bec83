"""The interface of a task for the learned methods: its evidence, and what is learned from links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.pooled import Taught
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.products import Scores
from linker.crosslingual.scoring.retrieval import Pass
from linker.crosslingual.scoring.stages import Stages
from linker.scoring.ranking.calibrated import Calibrated


class PairScores(Protocol):
    """Scores that are too expensive for all pairs and computed for candidates only."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        ...

    def features(self, rows: Int64Array, candidates: Int64Array) -> Float32Array:
        """Return float32 [n, c, names] for source pages `rows` [n] and their `candidates` [n, c]."""
        ...


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned from links: scores for all pairs [n, m] or given pairs, and scores for candidates only.

    `induced` holds the distinctness of the word pairs learned from links, `translations` the weights of all word pairs:
    CSR [v source, v target].
    """

    scores: Scores
    pairs: PairScores
    induced: sp.csr_array
    translations: sp.csr_array
    links: Int64Array


class Evidence(Protocol):
    """Two collections, scores that need no links, and a way to learn from links."""

    @property
    def source(self) -> Pages:
        """The pages to link."""
        ...

    @property
    def target(self) -> Pages:
        """The pages to which the source pages are linked."""
        ...

    @property
    def fixed(self) -> Scores:
        """Scores that need no links, by name: each [n, m]."""
        ...

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes that retrieve candidates."""
        ...

    @property
    def stages(self) -> Stages:
        """The stages of the run, by which it resumes."""
        ...

    @property
    def shared(self) -> Graph:
        """The pairs retrieved by the fixed-score passes: independent of the links."""
        ...

    @property
    def choosing(self) -> tuple[str, ...]:
        """Names of the scores that rank the retrieved pairs, to choose candidates."""
        ...

    @property
    def size(self) -> int:
        """Number of candidates per page."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether a target can be linked to one source page only."""
        ...

    def start(self, taught: Taught) -> Calibrated | None:
        """Return the pooled ranker for tasks that learn words from the source `taught`; None if there is none."""
        ...

    def learn(self, links: Int64Array) -> Learned:
        """Return what is learned from links: int64 [l, 2], source and target rows."""
        ...
