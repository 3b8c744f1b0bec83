"""Candidate lists for the ranker: out of fold for linked pages, and for the pages to link."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import AnyArray, BoolArray, Float32Array, Int64Array
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

    @property
    def exclusive(self) -> bool:
        """Whether a target can be linked to one source page only."""
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

    A page with several targets has a list for each, without the other targets.

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
    taken: Sequence[Int64Array],
    size: int,
    advance: Callable[[int], object] = lambda done: None,
    retrieved: Graph | None = None,
) -> list[Lists]:
    """Return `size` candidates of each source page in `rows`, with all features: one `Lists` for each of `taken`.

    `competitors`: other source rows that compete for the same targets; `taken`: targets that are excluded, each time
    all of those before and more. All of them are int64. `retrieved`: pairs that learned scores retrieved for some of
    these pages; those of the others are retrieved here.
    """
    name = digest(learned.links, rows, competitors, *taken)
    free = [free_targets(evidence, part) for part in taken]

    def make() -> Arrays:
        arrays: dict[str, AnyArray] = {}
        graph = _graph(evidence, learned, (rows, competitors), free, size, retrieved)
        for i, lists in enumerate(_described(evidence, learned, rows, graph, free, size)):
            arrays |= {f"targets{i}": lists.targets, f"features{i}": lists.features}
            arrays["names"] = np.array(lists.names)
        return arrays

    kept = evidence.stages.remember(f"lists-{name}", make)
    advance(len(rows))
    names = tuple(kept["names"].tolist())
    return [
        Lists(rows, kept[f"targets{i}"], kept[f"features{i}"], names, evidence.exclusive)
        for i in range(len(taken))
    ]


def _graph(
    evidence: Evidence,
    learned: Learned,
    pages: tuple[Int64Array, Int64Array],
    free: Sequence[Int64Array],
    size: int,
    retrieved: Graph | None,
) -> Graph:
    """Return the pairs of the rows `pages[0]`, and their rivals' among both: with `size` of the last `free` targets."""
    rows, everyone = pages[0], np.concatenate(pages)
    todo = everyone if retrieved is None else np.setdiff1d(everyone, retrieved.rows)
    graph = retrieve_taught(evidence, learned, todo, free[0]) | evidence.shared
    graph = graph if retrieved is None else graph | retrieved
    graph = graph.only(_flags(everyone, graph.shape[0]), _flags(free[0], graph.shape[1]))
    graph = filled(graph, everyone, free[-1], size, hashes(evidence.source.keys))
    return graph.around(_flags(rows, graph.shape[0]))


def _described(
    evidence: Evidence,
    learned: Learned,
    rows: Int64Array,
    graph: Graph,
    free: Sequence[Int64Array],
    size: int,
) -> Iterator[Lists]:
    values = {name: score.pairs(graph) for name, score in (evidence.fixed | learned.scores).items()}
    # Equal sums are ranked by a hash of the content, so that the order of input decides nothing.
    order = np.argsort(np.argsort(hashes(evidence.target.keys), kind="stable"))
    for part in free:
        keep = _flags(part, graph.shape[1])[graph.columns]
        inside = Graph(graph.rows[keep], graph.columns[keep], graph.shape)
        kept = {name: value[keep] for name, value in values.items()}
        lists = candidate_lists(kept, inside, rows, choosing=evidence.choosing, order=order, size=size)
        yield with_pairs(lists, learned.pairs.features(rows, lists.targets), learned.pairs.names)


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
    learned: Learned | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    advance: Callable[[int], object] = lambda done: None,
) -> list[Fold]:
    """Describe every linked page by what the links of the other folds, and `extra`, teach, with and without its target.

    `links` and `extra`: int64 [l, 2] and [e, 2]; `unlinked`: int64 rows. The targets of the other folds are excluded,
    unless pages may share targets, and the unlinked pages compete, as they do when the unlinked pages are linked.
    `absent`: targets that nobody can be linked to; `learned`: what all links and `extra` teach, if it is known. Raises
    InputError where every target is linked.
    """
    parts = []
    size = list_size(evidence, links, folds, seed)
    gone = links[:0, 1] if absent is None else absent
    known = np.concatenate([links[:, 1], gone]) if evidence.exclusive else gone
    if learned is None:
        learned = evidence.learn(links if extra is None else np.concatenate([links, extra]))
    # The competitors are retrieved once, not in every fold: no link of theirs is known.
    retrieved = retrieve_taught(evidence, learned, unlinked, free_targets(evidence, known))
    for held_out in folds_of(links, evidence.source, folds, seed):
        rest = np.delete(links, held_out, axis=0)
        rows = np.unique(links[held_out, 0])
        teachers = rest if extra is None else np.concatenate([rest, extra])
        taught, theirs = evidence.learn(teachers), links[held_out, 1]
        others = np.concatenate([np.setdiff1d(rest[:, 1], theirs), gone]) if evidence.exclusive else gone
        found = retrieved | retrieve_taught(evidence, taught, rows, free_targets(evidence, others))
        away = np.concatenate([known, theirs])
        lists, without = describe(evidence, taught, rows, unlinked, (others, away), size, advance, found)
        parts.append(once_per_target(lists, without, links[held_out]))
    return parts


def once_per_target(lists: Lists, without: Lists, links: Int64Array) -> Fold:
    """Return a fold in which a page with several targets among `links` (int64 [l, 2]) has a list for each of them.

    The place of the other targets is taken by the last candidate that is none.
    """
    gold: dict[int, set[int]] = {}
    for row, column in links.tolist():
        gold.setdefault(row, set()).add(column)
    places, chosen, right = [], [], []
    everywhere = np.arange(lists.targets.shape[1])
    for i, (row, targets) in enumerate(zip(lists.rows.tolist(), lists.targets, strict=True)):
        linked = np.flatnonzero(np.isin(targets, list(gold.get(row, ()))))
        others = np.setdiff1d(everywhere, linked)
        for place in linked.tolist() if len(others) else linked[:1].tolist():
            kept = np.isin(everywhere, linked) & (everywhere != place) & (len(others) > 0)
            places.append(np.where(kept, others[-1] if len(others) else 0, everywhere))
            chosen.append(i)
            right.append(place)
        if not len(linked):
            places.append(everywhere)
            chosen.append(i)
            right.append(-1)
    if len(chosen) == len(lists.rows):
        return Fold(lists, np.array(right, np.int64), without)
    order, at = np.array(chosen, np.int64), np.stack(places)
    targets = np.take_along_axis(lists.targets[order], at, axis=1)
    features = np.take_along_axis(lists.features[order], at[:, :, None], axis=1)
    many = replace(lists, rows=lists.rows[order], targets=targets, features=features)
    again = replace(
        without, rows=without.rows[order], targets=without.targets[order], features=without.features[order]
    )
    return Fold(many, np.array(right, np.int64), again)


def list_size(evidence: Evidence, links: Int64Array, folds: int = FOLDS, seed: int = 0) -> int:
    """Return the number of candidates per list: the evidence's size, or the number of unlinked targets if smaller.

    `links`: int64 [l, 2]; where pages may share targets, only those of one of the `folds` count as linked. Raises
    InputError where every target is linked.
    """
    linked = [links[:, 1]]
    if not evidence.exclusive and len(links):
        linked = [links[part, 1] for part in folds_of(links, evidence.source, folds, seed)]
    free = len(evidence.target) - max(len(np.unique(targets)) for targets in linked)
    if not free:
        raise InputError("the training links cover every target page: no page is left to link to")
    return min(evidence.size, free)


def gold_of(links: Int64Array) -> Mapping[int, int]:
    """Return the first target of each linked source row of `links` (int64 [l, 2])."""
    gold: dict[int, int] = {}
    for row, column in links.tolist():
        gold.setdefault(row, column)
    return gold
