"""Target pages that are near copies of one another: a link to one of them is as probable as a link to another.

The probability of a page is then low although it is certain that the correct page is in the group, so the group is
reported with its own probability.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.scoring.probability.competition import compete
from linker.scoring.probability.verification import first_candidates
from linker.scoring.ranking.fitting import FittedRanker
from linker.scoring.ranking.lists import CandidateLists, align

SAME = 0.8  # minimum Jaccard similarity between the words of near copies


@dataclass(frozen=True, slots=True)
class CopyGroup:
    """Rows of target pages that are near copies, the linked one first, and P(the correct page is one of them)."""

    targets: tuple[int, ...]
    probability: float


def groups_of(
    present: sp.csr_array, lists: CandidateLists, fitted: FittedRanker, linked: Int64Array
) -> dict[int, CopyGroup]:
    """Return the groups of the pages whose linked target has a near copy among their candidates, by source row.

    `present`: 0/1 CSR [m, v], the terms of the target pages; `fitted`: the ranker and the probabilities of the n
    `lists`; `linked` int64 [n], the linked targets, −1 for none.
    """
    copies = {
        i: members
        for i, page in enumerate(linked.tolist())
        if page >= 0 and (members := _members(present, lists.targets[i], page)).sum() > 1
    }
    together = _together(lists, fitted, copies)
    groups = {}
    for (i, members), p in zip(copies.items(), together.tolist(), strict=True):
        targets, chances = lists.targets[i, members], fitted.probabilities[i, :-1][members]
        order = np.lexsort((-chances, targets != linked[i]))
        probability = min(1.0, max(p, float(chances.sum())))
        groups[int(lists.rows[i])] = CopyGroup(tuple(targets[order].tolist()), probability)
    return groups


def _members(present: sp.csr_array, targets: Int64Array, page: int) -> BoolArray:
    return np.asarray(near_copies(present, page, targets) | (targets == page))


def _together(lists: CandidateLists, fitted: FittedRanker, copies: Mapping[int, BoolArray]) -> Float64Array:
    """Return the probability that each group would have if it were a single candidate: [groups].

    Copies are each other's rivals, and a list whose first candidates hardly differ looks like one without the correct
    page. So the verifier judges the list with only the best copy, which gets the sum of all copies' probabilities
    after competition. The result is 0 if a page outside the group is more probable.
    """
    model = fitted.model
    features = align(lists, model.ranker.names)
    logits = model.ranker.logits(features)
    won = compete(logits, lists.targets)
    inside = np.zeros(len(copies), np.bool_)
    for n, (i, members) in enumerate(copies.items()):
        best = np.flatnonzero(members)[won[i, :-1][members].argmax()]
        total = won[i, :-1][members].sum()
        others = np.setdiff1d(np.flatnonzero(members), best)
        logits[i, others], won[i, others], won[i, best] = -np.inf, 0, total
        inside[n] = won[i, :-1].argmax() == best
    rows = np.array(list(copies), np.int64)
    x = first_candidates(model.ranker, features[rows], logits[rows], won[rows])
    return np.asarray(np.where(inside, model.verifier(x, fitted.share), 0.0))


def near_copies(present: sp.csr_array, page: int, others: Int64Array) -> BoolArray:
    """Return which of the pages `others` (int64 [c]) have nearly the same set of terms as `page`: bool [c]."""
    left, right = present[[page]], present[others]
    shared = np.asarray((right @ left.T).toarray()).ravel()
    union = left.nnz + np.diff(right.indptr) - shared
    return np.asarray(shared >= SAME * union)
