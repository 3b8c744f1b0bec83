"""Lists for the ranker: out-of-fold for linked pages, and for the pages that are to be linked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.features import Lists, candidate_lists, with_pairs
from linker.crosslingual.ranking.pooled import Pooled
from linker.crosslingual.scoring.candidates import hashes
from linker.crosslingual.scoring.scores import Restrictable
from linker.errors import InputError

FOLDS = 5


class PairScores(Protocol):
    """Scores that are worth computing for candidates only."""

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        ...

    def features(self, rows: Int64Array, candidates: Int64Array) -> Float32Array:
        """Return float32 [n, c, names] for source pages `rows` [n] and their `candidates` [n, c]."""
        ...


@dataclass(frozen=True, eq=False)
class Learned:
    """What some links taught: scores of all pairs, scores of candidates, the word pairs induced, and all translations.

    `induced` and `translations`: CSR [v source, v target].
    """

    scores: dict[str, Restrictable]
    pairs: PairScores
    induced: sp.csr_array
    translations: sp.csr_array


class Evidence(Protocol):
    """Two collections, what is known of them without links, and a way to learn from links."""

    @property
    def source(self) -> Pages:
        """The pages to link."""
        ...

    @property
    def target(self) -> Pages:
        """The pages that they may be linked to."""
        ...

    @property
    def fixed(self) -> dict[str, Restrictable]:
        """Scores that need no links."""
        ...

    @property
    def choosing(self) -> tuple[str, ...]:
        """The scores that choose the candidates."""
        ...

    @property
    def size(self) -> int:
        """Candidates of a page."""
        ...

    def start(self, links: bool) -> Pooled | None:
        """Return a ranker from other language pairs, for when there are links to learn words from or none."""
        ...

    def learn(self, links: Int64Array) -> Learned:
        """Learn from links, int64 [n, 2] of source and target rows."""
        ...


@dataclass(frozen=True, eq=False)
class Fold:
    """Lists of linked pages that were left out when their features were learned, and where the right target stands."""

    lists: Lists
    right: Int64Array


def describe(
    evidence: Evidence,
    learned: Learned,
    rows: Int64Array,
    competitors: Int64Array,
    taken: Int64Array,
    size: int,
    advance: Callable[[int], object] = lambda done: None,
) -> Lists:
    """Return `size` candidates of each source page in `rows` with all features; targets in `taken` are out."""
    scores = {**evidence.fixed, **learned.scores}
    free = np.setdiff1d(np.arange(len(evidence.target)), taken)
    # Equal sums come in the order of the columns: a hash of the ids, never the order of input.
    free = free[np.argsort(hashes([evidence.target.ids[i] for i in free]), kind="stable")]
    lists = candidate_lists(
        scores, rows, competitors, free, choosing=evidence.choosing, size=size, advance=advance
    )
    return with_pairs(lists, learned.pairs.features(rows, lists.targets), learned.pairs.names)


def out_of_fold(
    evidence: Evidence,
    links: Int64Array,
    unlinked: Int64Array,
    *,
    extra: Int64Array | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    advance: Callable[[int], object] = lambda done: None,
) -> list[Fold]:
    """Describe every linked page with what the links of the other folds (and `extra`, always) taught.

    The other folds' targets are taken and the unlinked pages compete, as they will when the unlinked are answered.
    """
    order = np.random.default_rng(seed).permutation(len(links))
    parts = []
    gold, size = gold_of(links), list_size(evidence, links)
    for held_out in np.array_split(order, folds):
        rest = np.delete(links, held_out, axis=0)
        rows = np.unique(links[held_out, 0])
        teachers = rest if extra is None else np.concatenate([rest, extra])
        lists = describe(evidence, evidence.learn(teachers), rows, unlinked, rest[:, 1], size, advance)
        parts.append(Fold(lists, lists.right(gold)))
    return parts


def list_size(evidence: Evidence, links: Int64Array) -> int:
    """Return how many candidates a list has: as many as are wanted, or as are free once all links are taken.

    Raises InputError when no target is free.
    """
    free = len(evidence.target) - len(np.unique(links[:, 1]))
    if not free:
        raise InputError(
            "every target page is linked in the training links: there is nothing left to link to"
        )
    return min(evidence.size, free)


def gold_of(links: Int64Array) -> Mapping[int, int]:
    """Return each linked source row's target; the first where there are several."""
    gold: dict[int, int] = {}
    for row, column in links.tolist():
        gold.setdefault(row, column)
    return gold
