"""Candidate lists for the ranker: out of fold for linked pages, and for the pages to link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import BoolArray, Float32Array, Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.features import Lists, candidate_lists, with_pairs
from linker.crosslingual.ranking.folds import FOLDS, folds_of
from linker.crosslingual.ranking.pooled import Pooled, Taught
from linker.crosslingual.scoring.candidates import hashes
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.retrieval import Pass, filled, retrieve
from linker.crosslingual.scoring.scores import Scores
from linker.crosslingual.scoring.stages import Arrays, Stages, digest
from linker.errors import InputError


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
    """What links taught: scores that can be computed for all pairs [n, m] or given ones, and for candidates only.

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
        """The pages to link them to."""
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
        """The pairs that the passes by fixed scores retrieve: the same whatever the links are."""
        ...

    @property
    def choosing(self) -> tuple[str, ...]:
        """Names of the scores that rank the retrieved pairs, to choose candidates."""
        ...

    @property
    def size(self) -> int:
        """Number of candidates per page."""
        ...

    def start(self, taught: Taught) -> Pooled | None:
        """Return the pooled ranker for tasks that learn words from this; None if there is none."""
        ...

    def learn(self, links: Int64Array) -> Learned:
        """Return what links teach: int64 [l, 2], source and target rows."""
        ...


@dataclass(frozen=True, eq=False)
class Fold:
    """Lists of n held-out linked pages, and the position of the linked target in each: int64 [n], −1 if missing.

    `without`: lists of the same pages where the targets of all of them are missing, as if they had no counterpart.
    """

    lists: Lists
    right: Int64Array
    without: Lists

    def only(self, kept: BoolArray) -> Fold:
        """Return the fold with those of its pages that `kept` [n] marks."""
        return Fold(self.lists.only(kept), self.right[kept], self.without.only(kept))


def describe(
    evidence: Evidence,
    learned: Learned,
    rows: Int64Array,
    competitors: Int64Array,
    taken: Int64Array,
    size: int,
    advance: Callable[[int], object] = lambda done: None,
    retrieved: Graph | None = None,
) -> Lists:
    """Return `size` candidates of each source page in `rows`, with all features, excluding the targets in `taken`.

    `competitors`: other source rows that compete for the same targets. All three are int64 [rows]. `retrieved`: pairs
    that learned scores retrieved for some of these pages; those of the others are retrieved here.
    """
    name = digest(learned.links, rows, competitors, taken)

    def make() -> Arrays:
        lists = _describe(
            evidence, learned, (rows, competitors), free_targets(evidence, taken), size, retrieved
        )
        return {"targets": lists.targets, "features": lists.features, "names": np.array(lists.names)}

    lists = evidence.stages.remember(f"lists-{name}", make)
    advance(len(rows))
    return Lists(rows, lists["targets"], lists["features"], tuple(lists["names"].tolist()))


def _describe(
    evidence: Evidence,
    learned: Learned,
    pages: tuple[Int64Array, Int64Array],
    free: Int64Array,
    size: int,
    retrieved: Graph | None,
) -> Lists:
    rows, everyone = pages[0], np.concatenate(pages)
    todo = everyone if retrieved is None else np.setdiff1d(everyone, retrieved.rows)
    graph = retrieve_taught(evidence, learned, todo, free) | evidence.shared
    graph = graph if retrieved is None else graph | retrieved
    graph = graph.only(_flags(everyone, graph.shape[0]), _flags(free, graph.shape[1]))
    graph = filled(graph, everyone, free, size, hashes(evidence.source.keys))
    graph = graph.around(_flags(rows, graph.shape[0]))
    # Equal sums are ranked by a hash of the content, so that the order of input decides nothing.
    order = np.argsort(np.argsort(hashes(evidence.target.keys), kind="stable"))
    scores = evidence.fixed | learned.scores
    lists = candidate_lists(scores, graph, rows, choosing=evidence.choosing, order=order, size=size)
    return with_pairs(lists, learned.pairs.features(rows, lists.targets), learned.pairs.names)


def retrieve_taught(evidence: Evidence, learned: Learned, rows: Int64Array, free: Int64Array) -> Graph:
    """Return the pairs of the source pages `rows` and the target pages `free` that learned scores retrieve."""
    keys = evidence.source.keys, evidence.target.keys
    stage = f"taught-{digest(learned.links, rows, free)}"
    return retrieve(learned.scores, evidence.passes, rows, free, keys, evidence.stages, stage)


def free_targets(evidence: Evidence, taken: Int64Array) -> Int64Array:
    """Return the targets that are not `taken`, in the order of a hash of their content."""
    free = np.setdiff1d(np.arange(len(evidence.target)), taken)
    return free[np.argsort(hashes([evidence.target.keys[i] for i in free]), kind="stable")]


def _flags(rows: Int64Array, n: int) -> BoolArray:
    flags = np.zeros(n, np.bool_)
    flags[rows] = True
    return flags


def out_of_fold(
    evidence: Evidence,
    links: Int64Array,
    unlinked: Int64Array,
    *,
    extra: Int64Array | None = None,
    absent: Int64Array | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    advance: Callable[[int], object] = lambda done: None,
) -> list[Fold]:
    """Describe every linked page by what the links of the other folds, and `extra`, teach, with and without its target.

    `links` and `extra`: int64 [l, 2] and [e, 2]; `unlinked`: int64 rows. The targets of the other folds are excluded
    and the unlinked pages compete, as they do when the unlinked pages are linked. `absent`: targets that nobody can be
    linked to. Raises InputError where every target is linked.
    """
    parts = []
    gold, size = gold_of(links), list_size(evidence, links)
    gone = links[:0, 1] if absent is None else absent
    taken = np.concatenate([links[:, 1], gone])
    everything = links if extra is None else np.concatenate([links, extra])
    # The competitors are retrieved once, not in every fold: no link of theirs is known.
    retrieved = retrieve_taught(evidence, evidence.learn(everything), unlinked, free_targets(evidence, taken))
    for held_out in folds_of(links, evidence.source, folds, seed):
        rest = np.delete(links, held_out, axis=0)
        rows = np.unique(links[held_out, 0])
        teachers = rest if extra is None else np.concatenate([rest, extra])
        learned, others = evidence.learn(teachers), np.concatenate([rest[:, 1], gone])
        found = retrieved | retrieve_taught(evidence, learned, rows, free_targets(evidence, others))
        lists = describe(evidence, learned, rows, unlinked, others, size, advance, found)
        without = describe(evidence, learned, rows, unlinked, taken, size, retrieved=found)
        parts.append(Fold(lists, lists.right(gold), without))
    return parts


def list_size(evidence: Evidence, links: Int64Array) -> int:
    """Return the number of candidates per list: the evidence's size, or the number of unlinked targets if smaller.

    `links`: int64 [l, 2]. Raises InputError where every target is linked.
    """
    free = len(evidence.target) - len(np.unique(links[:, 1]))
    if not free:
        raise InputError("the training links cover every target page: no page is left to link to")
    return min(evidence.size, free)


def gold_of(links: Int64Array) -> Mapping[int, int]:
    """Return the first target of each linked source row of `links` (int64 [l, 2])."""
    gold: dict[int, int] = {}
    for row, column in links.tolist():
        gold.setdefault(row, column)
    return gold
