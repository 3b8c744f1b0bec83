"""Target pages that are near copies of one another: a link to one of them is as probable as a link to another.

The probability of a page is then low although it is certain that the right page is one of the group, so the group is
named and gets a probability of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.crosslingual.ranking.features import Lists

SAME = 0.8  # least Jaccard similarity of the words of near copies


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of target pages that are near copies, the linked one first, and P(the right page is one of them)."""

    targets: tuple[int, ...]
    probability: float


def groups_of(
    present: sp.csr_array, lists: Lists, probabilities: Float64Array, linked: Int64Array
) -> dict[int, Group]:
    """Return the groups of the pages whose linked target has a near copy among their candidates, by source row.

    `present`: 0/1 CSR [m, v], the terms of the target pages; `probabilities` float64 [n, c] of the candidates; `linked`
    int64 [n], the linked targets, −1 for none.
    """
    groups = {}
    for row, targets, p, page in zip(
        lists.rows.tolist(), lists.targets, probabilities, linked.tolist(), strict=True
    ):
        if page < 0:
            continue
        copies = near_copies(present, page, targets) | (targets == page)
        if copies.sum() > 1:
            members, chances = targets[copies], p[copies]
            order = np.lexsort((-chances, members != page))
            groups[row] = Group(tuple(members[order].tolist()), min(1.0, float(chances.sum())))
    return groups


def near_copies(present: sp.csr_array, page: int, others: Int64Array) -> BoolArray:
    """Return which of the pages `others` (int64 [c]) have nearly the same set of terms as `page`: bool [c]."""
    left, right = present[[page]], present[others]
    shared = np.asarray((right @ left.T).toarray()).ravel()
    union = left.nnz + np.diff(right.indptr) - shared
    return np.asarray(shared >= SAME * union)
