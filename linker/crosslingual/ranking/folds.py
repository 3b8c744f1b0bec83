"""Dividing linked pages into folds by a hash of their content, so that names and the input order change nothing.

If links are few, the result depends too much on a single division, so they are divided several times.
"""

import numpy as np

from indexes.dtypes import Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.candidates import hashes

FOLDS = 5
ENOUGH, MOST = 1000, 4  # held-out pages for a stable ranker, and maximum divisions


def folds_of(
    links: Int64Array, source: Pages, folds: int, seed: int = 0, division: int = 0
) -> list[Int64Array]:
    """Return the rows of `links` (int64 [l, 2]) in each of at most `folds` folds, each int64 and in ascending order.

    All links of a source page are in the same fold. The folds' page counts differ by at most one. Each `division`
    gives a different split.
    """
    pages = np.unique(links[:, 0])
    draw = f"{seed}.{division}" if division else str(seed)
    keys = hashes([f"{draw} {source.keys[page]}" for page in pages.tolist()])
    groups = np.array_split(pages[np.argsort(keys, kind="stable")], min(folds, len(pages)))
    return [np.flatnonzero(np.isin(links[:, 0], group)) for group in groups]


def divisions_of(links: Int64Array) -> int:
    """Return how many times to divide `links` (int64 [l, 2]) into folds: the fewer there are, the more often."""
    return min(MOST, max(1, round(ENOUGH / max(1, len(np.unique(links[:, 0]))))))


def held_out(
    links: Int64Array, source: Pages, folds: int, seed: int = 0, divisions: int = 1
) -> list[Int64Array]:
    """Return the rows of `links` (int64 [l, 2]) in each fold of each of the `divisions`, split by `folds_of`."""
    return [fold for d in range(divisions) for fold in folds_of(links, source, folds, seed, d)]
