"""Candidate lists of texts with their features; also those of texts whose links are held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.special import softmax

from indexes.dtypes import BoolArray, Float32Array, Float64Array, Int64Array

UNLISTED = 1e-4  # probability of a candidate in lists that do not have it


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Candidates of n source pages: `rows` [n], `targets` [n, c], best guess first; float32 `features` [n, c, f].

    `exclusive`: whether a target can be linked to only one of the pages.
    """

    rows: Int64Array
    targets: Int64Array
    features: Float32Array
    names: tuple[str, ...]
    exclusive: bool = True

    def only(self, kept: BoolArray) -> CandidateLists:
        """Return the lists marked in `kept` [n]."""
        arrays = {key: getattr(self, key)[kept] for key in ("rows", "targets", "features")}
        return replace(self, **arrays)

    def right(self, gold: Mapping[int, int]) -> Int64Array:
        """Return the position of each row's linked target in its list: int64 [n], −1 if it is not there."""
        linked = np.array([gold.get(int(row), -1) for row in self.rows], np.int64)
        hit = self.targets == linked[:, None]
        return np.where(hit.any(axis=1), hit.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class Fold:
    """Lists of n held-out linked pages, and the position of the linked target in each: int64 [n], −1 if missing.

    A page with several targets has one list per target, without the other targets.

    `without`: lists of the same pages with all their targets missing, as if they had no counterpart.
    """

    lists: CandidateLists
    right: Int64Array
    without: CandidateLists

    @property
    def linked(self) -> Int64Array:
        """The linked target of each list: int64 [n], −1 if it is missing."""
        found = self.lists.targets[np.arange(len(self.right)), self.right]
        return np.where(self.right >= 0, found, -1)

    def only(self, kept: BoolArray) -> Fold:
        """Return the fold with only the pages marked in `kept` [n]."""
        return Fold(self.lists.only(kept), self.right[kept], self.without.only(kept))

    def without_pages(self, rows: Int64Array) -> Fold:
        """Return the fold without the source pages `rows`; itself, not a copy, if none of them is in it."""
        kept = ~np.isin(self.lists.rows, rows)
        return self if kept.all() else self.only(kept)


@dataclass(frozen=True, eq=False)
class Chances:
    """The candidates of n source pages with their `probabilities`, float64 [n, c + 1], the last for "no link".

    `rows` [n], `targets` [n, c]; `linked` [n]: the known link of a held-out page, −1 if it is missing.
    """

    rows: Int64Array
    targets: Int64Array
    probabilities: Float64Array
    linked: Int64Array

    @property
    def first(self) -> Float64Array:
        """The probabilities of the most probable candidates: float64 [n]."""
        return np.asarray(self.probabilities[:, :-1].max(axis=1, initial=0))

    @property
    def right(self) -> BoolArray:
        """Whether the most probable candidates are the known links: bool [n]."""
        best = self.probabilities[:, :-1].argmax(axis=1)
        return np.asarray(self.targets[np.arange(len(best)), best] == self.linked)

    def averaged(self, others: Sequence[Chances]) -> Chances:
        """Return these candidates with the geometric mean of their probabilities here and in `others`.

        A page that others lack, or list with another link, keeps its own probabilities in their stead.
        """
        views = [self.probabilities, *(each._seen_by(self) for each in others)]
        logs = np.log(np.maximum(views, UNLISTED))
        return replace(self, probabilities=softmax(logs.mean(axis=0), axis=1))

    def _seen_by(self, asker: Chances) -> Float64Array:
        """Return the probabilities of the candidates of `asker`, [n, c + 1]."""
        mine, theirs = (each.rows << 32 | each.linked + 1 for each in (self, asker))
        _, common, places = np.intersect1d(mine, theirs, return_indices=True)
        listed, asked = self.targets[common], asker.targets[places]
        shape = len(common), 1 + max(int(listed.max(initial=0)), int(asked.max(initial=0)))
        rows, askers = (np.repeat(np.arange(len(common)), each.shape[1]) for each in (listed, asked))
        table = coo_array((self.probabilities[common, :-1].ravel(), (rows, listed.ravel())), shape).tocsr()
        probabilities = asker.probabilities.copy()
        probabilities[places, :-1] = np.asarray(table[askers, asked.ravel()]).reshape(asked.shape)
        probabilities[places, -1] = self.probabilities[common, -1]
        return probabilities


def align(lists: CandidateLists, names: tuple[str, ...], missing: Float64Array | None = None) -> Float32Array:
    """Return the features `names` of the lists, in this order: float32 [n, c, names].

    `missing`: the values of features that the lists do not have, [names], such as a ranker's centre; by default 0.
    """
    values = np.zeros(len(names)) if missing is None else missing
    position = {name: i for i, name in enumerate(lists.names)}
    n, c, _ = lists.features.shape
    columns = [
        lists.features[:, :, position[name]] if name in position else np.full((n, c), centre, np.float32)
        for name, centre in zip(names, values.tolist(), strict=True)
    ]
    return np.stack(columns, axis=2)
