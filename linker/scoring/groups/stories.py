"""Groups of documents, each with its certainty, its medoid, and its weakest link, without which it would split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from indexes.dtypes import Float64Array, Int64Array
from linker.scoring.groups.clustering import THRESHOLD, cluster, several
from linker.scoring.groups.evidence import PairEvidence


@dataclass(frozen=True, slots=True)
class ScoredStory:
    """A group of two documents or more.

    `members` int64, ascending; `probability`: the expected share of right pairs of different texts, 1 if all are near
    copies; `medoid`: the member most likely to belong to the others; `weakest`: the least probable of the links that
    hold the group together, and its probability; None if all are near copies. `leaving` int64: the members that would
    leave with the link's second document, the smaller part.
    """

    label: int
    members: Int64Array
    probability: float
    medoid: int
    weakest: tuple[int, int, float] | None
    leaving: Int64Array


@dataclass(frozen=True, eq=False)
class Stories:
    """The groups of n documents.

    `labels` int64 [n]; `leader` int64 [n]: the document it is a near copy of, itself if not a copy; `belongs` float64
    [n]: mean P(the document belongs to another text of its group), NaN if it is alone; `certain` float64 [n]: the
    probability of its group. `pairs` int64 [m, 2] of different texts, and their `probabilities` [m].
    """

    labels: Int64Array
    leader: Int64Array
    belongs: Float64Array
    certain: Float64Array
    pairs: Int64Array
    probabilities: Float64Array

    def at_least(self, threshold: float) -> Stories:
        """Return the stories in which a group whose probability is below `threshold` keeps only its near copies."""
        texts = np.bincount(self.labels, self.leader == np.arange(len(self.leader)))[self.labels]
        dissolved = (texts > 1) & (self.certain < threshold)
        labels = np.where(dissolved, len(self.labels) + self.leader, self.labels)
        _, labels = np.unique(labels, return_inverse=True)
        size = np.bincount(labels)[labels]
        belongs = np.where(dissolved, np.where(size > 1, 1.0, np.nan), self.belongs)
        return replace(self, labels=labels, belongs=belongs, certain=np.where(dissolved, 1.0, self.certain))

    def groups(self) -> Iterator[ScoredStory]:
        """Yield the groups of two documents or more."""
        weakest, part = self._weakest()
        for members in several(self.labels):
            label = int(self.labels[members[0]])
            texts = members[self.leader[members] == members]
            medoid = int(texts[self.belongs[texts].argmax()])
            weak, leaving = weakest.get(label), members[:0]
            if weak:
                first, second = (members[part[self.leader[members]] == part[end]] for end in weak[:2])
                if len(first) < len(second):
                    first, second, weak = second, first, (weak[1], weak[0], weak[2])
                leaving = second
            yield ScoredStory(label, members, float(self.certain[members[0]]), medoid, weak, leaving)

    def _weakest(self) -> tuple[dict[int, tuple[int, int, float]], Int64Array]:
        """Return, by group, the least probable link of its maximum spanning tree, and the parts [n] left without it."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

        inside = self.labels[self.pairs[:, 0]] == self.labels[self.pairs[:, 1]]
        pairs, cost = self.pairs[inside], 2 - self.probabilities[inside]
        count = len(self.labels)
        tree = minimum_spanning_tree(
            csr_array((cost, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
        ).tocoo()
        found: dict[int, tuple[int, int, float]] = {}
        last: dict[int, int] = {}
        # in this order, the last link of each group is its weakest
        for at in np.argsort(tree.data, kind="stable").tolist():
            one, other = int(tree.row[at]), int(tree.col[at])
            label = int(self.labels[one])
            found[label], last[label] = (one, other, 2 - float(tree.data[at])), at
        rest = np.delete(np.arange(tree.nnz), list(last.values()))
        forest = csr_array((tree.data[rest], (tree.row[rest], tree.col[rest])), shape=(count, count))
        return found, connected_components(forest, directed=False)[1].astype(np.int64)


def stories_of(
    found: PairEvidence, probabilities: Float64Array, leader: Int64Array, threshold: float = THRESHOLD
) -> Stories:
    """Return the groups of documents by P(same story) of their pairs, float64 [m]; near copies count as one text."""
    weakest = found.weakest(probabilities)
    pairs, probabilities = _of_texts(leader, found.pairs, probabilities)
    labels = cluster(pairs, probabilities, np.where(leader == np.arange(found.count), weakest, 0), threshold)[
        leader
    ]
    belongs = _belonging(labels, leader, pairs, probabilities, weakest, threshold)
    texts = leader == np.arange(found.count)
    groups = int(labels.max(initial=-1)) + 1
    sums = np.bincount(labels[texts], np.nan_to_num(belongs[texts], nan=1.0), groups)
    certain = sums / np.maximum(np.bincount(labels[texts], minlength=groups), 1)
    return Stories(labels, leader, belongs, certain[labels], pairs, probabilities)


def _of_texts(
    leader: Int64Array, pairs: Int64Array, probabilities: Float64Array
) -> tuple[Int64Array, Float64Array]:
    """Return the distinct pairs of different texts, each with the largest probability among its copies."""
    count = len(leader)
    ends = np.sort(leader[pairs], axis=1)
    different = ends[:, 0] != ends[:, 1]
    codes, pair = np.unique(ends[different, 0] * count + ends[different, 1], return_inverse=True)
    best = np.zeros(len(codes))
    np.maximum.at(best, pair, probabilities[different])
    return np.stack([codes // max(count, 1), codes % max(count, 1)], axis=1), best


def _belonging(
    labels: Int64Array,
    leader: Int64Array,
    pairs: Int64Array,
    probabilities: Float64Array,
    weakest: Float64Array,
    threshold: float,
) -> Float64Array:
    """Return the mean P(same story) of each document with the other texts of its group, float64 [n]."""
    texts = leader == np.arange(len(leader))
    weak = np.where(texts, weakest, 0)
    inside = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    one, other = pairs[inside].T
    more = probabilities[inside] - threshold * weak[one] * weak[other]
    sums = threshold * weak * (np.bincount(labels, weak)[labels] - weak)
    for end in (one, other):
        sums += np.bincount(end, more, len(labels))
    others = np.bincount(labels, texts)[labels] - 1
    mean = np.where(others > 0, sums / np.maximum(others, 1), np.nan)[leader]
    copies = np.bincount(labels)[labels] > 1  # groups of a single text with copies
    return np.where(np.isnan(mean) & copies, 1.0, mean)
