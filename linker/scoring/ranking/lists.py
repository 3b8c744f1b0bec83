"""Candidate lists of texts with their features; also those of texts whose links are held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from indexes.dtypes import BoolArray, Float32Array, Float64Array, Int64Array


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

    def only(self, kept: BoolArray) -> Fold:
        """Return the fold with only the pages marked in `kept` [n]."""
        return Fold(self.lists.only(kept), self.right[kept], self.without.only(kept))

    def without_pages(self, rows: Int64Array) -> Fold:
        """Return the fold without the source pages `rows`; itself, not a copy, if none of them is in it."""
        kept = ~np.isin(self.lists.rows, rows)
        return self if kept.all() else self.only(kept)


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
