"""Judged pairs of documents, from which P(same story) is learned and on which a promised precision is tested."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.scoring.groups.stories import Stories


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Judged pairs of n documents.

    `story` int64 [n]: the story of each document in a same-story pair, −1 for others. If only pairs of the same story
    were named (`complete`), two of these documents not joined by a chain of pairs are assumed to be different
    stories; otherwise only `pairs` (int64 [j, 2]) count; `same` (bool [j]) says which of them are the same story.
    `learns` and `tests` bool [n]: documents whose pairs are used for learning and for testing.
    """

    story: Int64Array
    pairs: Int64Array
    same: BoolArray
    complete: bool
    learns: BoolArray
    tests: BoolArray

    def __len__(self) -> int:
        return len(self.pairs)

    def labels(self, pairs: Int64Array) -> tuple[Int64Array, BoolArray]:
        """Return the positions in `pairs` (int64 [m, 2], ascending) to learn from, and which are the same story."""
        return self._verdicts(pairs, self.learns)

    def within(self, stories: Stories) -> tuple[Float64Array, BoolArray]:
        """Return, for judged pairs of different texts in one group, the group's probability [t] and which are right."""
        if self.complete:
            known = np.flatnonzero(self.tests)
            known = known[np.argsort(stories.labels[known], kind="stable")]
            parts = np.split(known, np.flatnonzero(np.diff(stories.labels[known])) + 1)
            ends = [np.triu_indices(len(part), 1) for part in parts]
            found = [np.stack([part[a], part[b]], axis=1) for part, (a, b) in zip(parts, ends, strict=True)]
            pairs = np.sort(np.concatenate([np.empty((0, 2), np.int64), *found]), axis=1)
        else:
            pairs = self.pairs[stories.labels[self.pairs[:, 0]] == stories.labels[self.pairs[:, 1]]]
        pairs = pairs[stories.leader[pairs[:, 0]] != stories.leader[pairs[:, 1]]]
        at, right = self._verdicts(pairs, self.tests)
        return stories.certain[pairs[at, 0]], right

    def _verdicts(self, pairs: Int64Array, allowed: BoolArray) -> tuple[Int64Array, BoolArray]:
        here = allowed[pairs].all(axis=1) if len(pairs) else np.zeros(0, bool)
        one, other = self.story[pairs[here]].T
        at = np.flatnonzero(here)
        if self.complete:
            known = (one >= 0) & (other >= 0)
            return at[known], (one == other)[known]
        verdict = {(a, b): s for (a, b), s in zip(self.pairs.tolist(), self.same.tolist(), strict=True)}
        verdicts = [verdict.get((a, b)) for a, b in pairs[at].tolist()]
        known = np.array([s is not None for s in verdicts], bool)
        return at[known], np.array([s for s in verdicts if s is not None], bool)


def judged_pairs_of(
    pairs: Mapping[tuple[str, str], bool], place: Mapping[str, int], *, halved: bool = False, seed: int = 0
) -> JudgedPairs:
    """Return pairs that were judged by id, as pairs of the documents' positions; those with an unknown id are left out.

    `halved`: some pairs are for testing. If only pairs of the same story are named, half of the stories are held out
    from learning for that; if there are verdicts of both kinds, all pairs are used for testing, and none for learning.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    known = {
        tuple(sorted((place[a], place[b]))): s
        for (a, b), s in pairs.items()
        if a in place and b in place and a != b
    }
    ends = np.array(list(known), np.int64).reshape(-1, 2)
    same = np.array(list(known.values()), bool)
    count, complete = len(place), bool(same.all())
    graph = csr_array((np.ones(int(same.sum())), tuple(ends[same].T)), shape=(count, count))
    groups, component = connected_components(graph, directed=False)
    paired = np.isin(np.arange(count), ends)
    story = np.where(paired, component, -1)
    every = np.ones(count, bool)
    learns, tests = every, ~every
    if halved:
        half = np.random.default_rng(seed).random(groups)[component] < 0.5
        learns, tests = (half, ~half) if complete else (~every, every)
    return JudgedPairs(story, ends, same, complete, learns & paired, tests & paired)
