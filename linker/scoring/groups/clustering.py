"""Correlation clustering: group documents according to the probabilities of their pairs.

With P(same story) of each pair, a pair inside a group gains P − θ, and the groups with the largest sum of gains make
the fewest expected mistakes if θ is ½ (Bansal, Blum and Chawla, 2004). The optimum is NP-hard. Here, groups are merged
greedily by the gain of the merge (greedy additive edge contraction: Keuper et al., "Efficient decomposition of image
and mesh graphs by lifted multicuts", 2015); then single documents move to the group where they gain most, the best
local search in Elsner and Schudy, "Bounding and comparing methods for correlation clustering beyond ILP" (2009). Both
repeat until neither changes anything.

Only candidate pairs have a probability. Another pair of documents i and j gains θ (wᵢ wⱼ − 1), where w is P of a
document's last candidate: if the candidate lists end with improbable pairs, two documents that are not candidates of
each other almost certainly belong apart; if they end with probable ones, the lists were too short to tell.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from indexes.dtypes import Float64Array, Int64Array

THRESHOLD = 0.5
LEAST = 1e-9  # gains up to this count as rounding errors
ROUNDS, PASSES = 10, 20  # rounds of merging and moving; passes over all documents


def cluster(
    pairs: Int64Array, probabilities: Float64Array, weakest: Float64Array, threshold: float = THRESHOLD
) -> Int64Array:
    """Return the group of each of n documents, int64 [n], numbered from 0 in the order of their first documents.

    `pairs` int64 [m, 2], distinct, with `probabilities` [m]; `weakest` [n]: P of each document's last
    candidate, 0 if its list holds all candidates. A group is connected by pairs above the `threshold`.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count = len(weakest)
    joining = probabilities > threshold
    ones = np.ones(int(joining.sum()))
    graph = csr_array((ones, (pairs[joining, 0], pairs[joining, 1])), shape=(count, count))
    _, component = connected_components(graph, directed=False)
    labels = np.arange(count)
    inside = component[pairs[:, 0]] == component[pairs[:, 1]]
    of_pair = component[pairs[inside, 0]]
    order = np.argsort(of_pair, kind="stable")
    pairs, probabilities = pairs[inside][order], probabilities[inside][order]
    edges = np.searchsorted(of_pair[order], np.arange(component.max(initial=-1) + 2))
    for documents in several(component.astype(np.int64)):
        number = component[documents[0]]
        part = slice(edges[number], edges[number + 1])
        local = np.searchsorted(documents, pairs[part])
        found = _Partition(local, probabilities[part], weakest[documents], threshold).solve()
        labels[documents] = documents[found]
    return _number(labels)


def several(labels: Int64Array) -> Iterator[Int64Array]:
    """Yield the documents (ascending) of each label that occurs repeatedly in `labels` [n], by ascending label."""
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    ends = np.cumsum(sizes)
    for label in np.flatnonzero(sizes > 1).tolist():
        yield order[ends[label] - sizes[label] : ends[label]]


def _number(labels: Int64Array) -> Int64Array:
    """Return labels [n] as numbers from 0, in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


class _Partition:
    """A partition of n connected documents, each of which is alone at first."""

    def __init__(
        self, pairs: Int64Array, probabilities: Float64Array, weakest: Float64Array, threshold: float
    ) -> None:
        self._threshold, self._weakest = threshold, list[float](weakest.tolist())
        # The gain of a candidate pair in excess of what it would gain as an absent pair.
        gains = probabilities - threshold * weakest[pairs[:, 0]] * weakest[pairs[:, 1]]
        self._near: list[dict[int, float]] = [{} for _ in self._weakest]
        for (i, j), gain in zip(pairs.tolist(), gains.tolist(), strict=True):
            self._near[i][j] = self._near[j][i] = gain
        self._group = list(range(len(self._weakest)))
        self._size = [1] * len(self._weakest)
        self._sum = self._weakest.copy()

    def solve(self) -> Sequence[int]:
        """Return the group of each document, named by the group's first document."""
        for _ in range(ROUNDS):
            merged = self._merge()
            if not (self._move() or merged):
                break
        first: dict[int, int] = {}
        return [first.setdefault(group, i) for i, group in enumerate(self._group)]

    def _absent(self, a: int, b: int) -> float:
        """Return the gain of all pairs between two groups if every one of them were absent."""
        return self._threshold * (self._sum[a] * self._sum[b] - self._size[a] * self._size[b])

    def _merge(self) -> bool:
        """Merge the two groups that gain most, until none gains; return whether any were merged."""
        between = self._gains()
        heap = [
            (-gain, a, b)
            for a, others in between.items()
            for b, more in others.items()
            if a < b and (gain := more + self._absent(a, b)) > LEAST
        ]
        heapq.heapify(heap)
        into: dict[int, int] = {}
        while heap:
            lost, a, b = heapq.heappop(heap)
            if a in into or b in into or -lost != between[a][b] + self._absent(a, b):
                continue  # outdated: one of the two groups has changed, and the pair was pushed again
            if len(between[a]) < len(between[b]):
                a, b = b, a
            into[b] = a
            self._size[a] += self._size[b]
            self._sum[a] += self._sum[b]
            self._size[b], self._sum[b] = 0, 0.0
            for other, more in between.pop(b).items():
                del between[other][b]
                if other != a:
                    between[a][other] = between[other][a] = between[a].get(other, 0.0) + more
            for other, more in between[a].items():
                low, high = min(a, other), max(a, other)
                if (gain := more + self._absent(low, high)) > LEAST:
                    heapq.heappush(heap, (-gain, low, high))
        for i, group in enumerate(self._group):
            last = group
            while last in into:
                last = into[last]
            self._group[i] = last
        return bool(into)

    def _gains(self) -> dict[int, dict[int, float]]:
        """Return, by group, the groups with which it shares candidate pairs, and the sum of the gains of these pairs.

        As in `_near`, the gain of a pair is relative to the gain of an absent pair.
        """
        between: dict[int, dict[int, float]] = {group: {} for group in self._group}
        for i, near in enumerate(self._near):
            a = self._group[i]
            for j, gain in near.items():
                if (b := self._group[j]) != a:
                    between[a][b] = between[a].get(b, 0.0) + gain
        return between

    def _move(self) -> bool:
        """Move each document to the group where it gains most, or to a new group; return whether any moved."""
        moved = False
        for _ in range(PASSES):
            if not sum(self._move_one(i) for i in range(len(self._group))):
                break
            moved = True
        return moved

    def _move_one(self, i: int) -> bool:
        here, weak = self._group[i], self._weakest[i]
        self._size[here] -= 1
        self._sum[here] -= weak
        gains: dict[int, float] = defaultdict(float)
        for j, gain in self._near[i].items():
            gains[self._group[j]] += gain
        for group in gains:
            gains[group] += self._threshold * (weak * self._sum[group] - self._size[group])
        stay = gains.pop(here, 0.0) if self._size[here] else 0.0
        best = max(gains, key=lambda group: (gains[group], -group), default=here)
        to = here
        if gains.get(best, 0.0) > max(stay, 0.0) + LEAST:
            to = best
        elif stay < -LEAST:
            to = self._size.index(0)
        self._group[i] = to
        self._size[to] += 1
        self._sum[to] += weak
        return to != here
