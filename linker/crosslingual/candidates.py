"""The best targets of each source page, found block by block; ties broken by a hash of the two ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import xxhash

Scores = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
DECIMALS = 6  # scores that agree so far are equal: sums of the same numbers in another order are
BLOCK = 256
DEPTH = 100  # candidates kept for each source before re-ranking
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Scorer(Protocol):
    """Scores of all pairs, computed when asked for; higher is closer, and 0 means nothing in common."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        ...

    def block(self, begin: int, end: int) -> Scores:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        ...


@dataclass(frozen=True, eq=False)
class Candidates:
    """Each source's best targets, best first: `targets` int64 [n, k], −1 pads; `scores` float32 [n, k], −inf pads.

    Pairs that score 0 or less are never candidates.
    """

    targets: Rows
    scores: Scores

    def cut(self, k: int) -> Candidates:
        """Return the first k of each source."""
        return Candidates(self.targets[:, :k], self.scores[:, :k])

    def pairs(self) -> tuple[Rows, Rows, Scores]:
        """Return sources, targets and scores of all candidates, row by row: three arrays of one length."""
        rows, columns = np.nonzero(self.targets >= 0)
        return rows, self.targets[rows, columns], self.scores[rows, columns]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """What one pass over all pairs finds: candidates, and each page's mean score with its nearest pages.

    `forward` float32 [sources] and `backward` float32 [targets] are means over the `k` best (fewer count as 0).
    """

    candidates: Candidates
    forward: Scores
    backward: Scores


def hashes(ids: Sequence[str]) -> Hashes:
    """Hash ids: uint64 [n], the same on every machine."""
    return np.fromiter(
        (xxhash.xxh3_64_intdigest(i.encode("utf-8", "surrogatepass")) for i in ids), np.uint64, len(ids)
    )


def tie_breaks(source: Hashes, target: Hashes) -> Hashes:
    """Hash pairs of ids, given the hashes of each side: uint64, broadcast."""
    mixed = (source ^ (target * _MIX)) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(31))


def rank(
    rows: Rows, columns: Rows, scores: Scores, n: int, k: int, source: Hashes, target: Hashes
) -> Candidates:
    """Sort scored pairs into candidates: by score to six decimals, then by the hash of the ids.

    rows, columns, scores: arrays of one length, in any order; n: number of sources; pairs of score ≤ 0 are left out.
    """
    good = scores > 0
    rows, columns, scores = rows[good], columns[good], scores[good]
    ties = tie_breaks(source[rows], target[columns])
    order = np.lexsort((ties, -np.round(scores.astype(np.float64), DECIMALS), rows))
    rows, columns, scores = rows[order], columns[order], scores[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, np.arange(n))[rows]
    kept = place < k
    result = Candidates(np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, np.float32))
    result.targets[rows[kept], place[kept]] = columns[kept]
    result.scores[rows[kept], place[kept]] = scores[kept]
    return result


def nearest(
    scorer: Scorer,
    source_ids: Sequence[str],
    target_ids: Sequence[str],
    *,
    depth: int = DEPTH,
    k: int = 4,
    block: int = BLOCK,
    advance: Callable[[int], object] = lambda done: None,
) -> Neighbours:
    """Go over all pairs once, in blocks of sources: the `depth` best of each source and the means for the margin.

    Memory: a few blocks of [block, targets]. `advance` is told how many sources each block had.
    """
    n, m = scorer.shape
    source, target = hashes(source_ids), hashes(target_ids)
    depth = min(depth, m)
    parts: list[Candidates] = []
    forward = np.zeros(n, np.float32)
    best = np.zeros((min(k, n), m), np.float32)
    for begin in range(0, n, block):
        scores = scorer.block(begin, min(begin + block, n))
        parts.append(_best_of(scores, depth, source[begin : begin + block], target))
        top = np.maximum(parts[-1].scores[:, :k], 0)
        forward[begin : begin + block] = top.sum(axis=1) / min(k, m)
        both = np.concatenate((best, scores))
        best = -np.partition(-both, len(best) - 1, axis=0)[: len(best)]
        advance(len(scores))
    found = Candidates(np.concatenate([p.targets for p in parts]), np.concatenate([p.scores for p in parts]))
    return Neighbours(found, forward, best.mean(axis=0))


def _best_of(scores: Scores, k: int, source: Hashes, target: Hashes) -> Candidates:
    """Rank each row's k best; all that ties with the k-th takes part, so that order of input decides nothing."""
    m = scores.shape[1]
    least = np.partition(scores, m - k, axis=1)[:, m - k] - 10.0**-DECIMALS
    rows, columns = np.nonzero((scores >= least[:, None]) & (scores > 0))
    return rank(rows, columns, scores[rows, columns], len(scores), k, source, target)
