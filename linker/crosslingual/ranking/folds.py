"""Dividing linked pages into folds by a hash of their content, so that names and the order of input change nothing."""

from __future__ import annotations

import numpy as np

from indexes.dtypes import Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.candidates import hashes

FOLDS = 5


def folds_of(links: Int64Array, source: Pages, folds: int, seed: int = 0) -> list[Int64Array]:
    """Return the rows of `links` (int64 [l, 2]) in each of at most `folds` folds, each int64 and in ascending order.

    All links of a source page are in the same fold. The folds' numbers of pages differ by at most one.
    """
    pages = np.unique(links[:, 0])
    keys = hashes([f"{seed} {source.keys[page]}" for page in pages.tolist()])
    groups = np.array_split(pages[np.argsort(keys, kind="stable")], min(folds, len(pages)))
    return [np.flatnonzero(np.isin(links[:, 0], group)) for group in groups]
