"""The best targets of each source page, found block by block; ties broken by a hash of the two ids."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import xxhash

from indexes.dtypes import Float32Array, Int64Array

Hashes = npt.NDArray[np.uint64]
DECIMALS = 6  # scores that agree so far are equal: sums of the same numbers in another order are
BLOCK = 256
GROUP = 64  # columns whose maximum is looked at first
DEPTH = 100  # candidates kept for each source before re-ranking
_MIX = np.uint64(0x9E3779B97F4A7C15)


class PagePairScorer(Protocol):
    """Scores of all pairs, computed when asked for; higher is closer, and 0 means nothing in common."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source and of target pages."""
        ...

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        ...


@dataclass(frozen=True, eq=False)
class Candidates:
    """Each source's best targets, best first: `targets` int64 [n, k], −1 pads; `scores` float32 [n, k], −inf pads.

    Pairs that score 0 or less are never candidates.
    """

    targets: Int64Array
    scores: Float32Array

    def cut(self, k: int) -> Candidates:
        """Return the first k of each source."""
        return Candidates(self.targets[:, :k], self.scores[:, :k])

    def pairs(self) -> tuple[Int64Array, Int64Array, Float32Array]:
        """Return sources, targets and scores of all candidates, row by row: three arrays of one length."""
        rows, columns = np.nonzero(self.targets >= 0)
        return rows, self.targets[rows, columns], self.scores[rows, columns]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """What one pass over all pairs finds: candidates, and each page's mean score with its nearest pages.

    `forward` float32 [sources] and `backward` float32 [targets] are means over the `k` best (fewer count as 0).
    """

    candidates: Candidates
    forward: Float32Array
    backward: Float32Array


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
    rows: Int64Array,
    columns: Int64Array,
    scores: Float32Array,
    n: int,
    k: int,
    source: Hashes,
    target: Hashes,
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


@dataclass
class Progress:
    """A pass so far: candidates of the first `done` sources, and each target's k best scores, least first [k, m]."""

    found: Candidates
    best: Float32Array
    done: int = 0


class Keeper(Protocol):
    """Who keeps a pass, so that it can go on after an interruption."""

    def restore(self, progress: Progress) -> None:
        """Fill in what was kept."""
        ...

    def keep(self, progress: Progress) -> None:
        """Keep the state, if it is time to."""
        ...


def nearest(
    scorer: PagePairScorer,
    source_ids: Sequence[str],
    target_ids: Sequence[str],
    *,
    depth: int = DEPTH,
    k: int = 4,
    block: int = BLOCK,
    workers: int | None = None,
    checkpoint: Keeper | None = None,
    advance: Callable[[int], object] = lambda done: None,
) -> Neighbours:
    """Go over all pairs once, in blocks of sources: the `depth` best of each source, and the means over `k` neighbours.

    Memory: a block [block, targets] for each of the workers (default: the cores), and one more. `advance` is told
    how many sources each block had.
    """
    n, m = scorer.shape
    depth = min(depth, m)
    source, target = hashes(source_ids), hashes(target_ids)
    found = Candidates(np.full((n, depth), -1, np.int64), np.full((n, depth), -np.inf, np.float32))
    progress = Progress(found, np.zeros((k, m), np.float32))
    if checkpoint:
        checkpoint.restore(progress)
        advance(progress.done)
    for begin, scores in _blocks(scorer, progress.done, block, workers or len(os.sched_getaffinity(0))):
        rows = slice(begin, begin + len(scores))
        part = _best_of(scores, depth, source[rows], target)
        found.targets[rows], found.scores[rows] = part.targets, part.scores
        _raise(progress.best, scores)
        progress.done += len(scores)
        advance(len(scores))
        if checkpoint:
            checkpoint.keep(progress)
    forward = np.maximum(found.scores[:, :k], 0).sum(axis=1) / max(1, min(k, m))
    return Neighbours(found, forward, progress.best.sum(axis=0) / max(1, min(k, n)))


def score_pairs(
    scorer: PagePairScorer, rows: Int64Array, columns: Int64Array, block: int = BLOCK
) -> Float32Array:
    """Return the scores of some pairs: float32, as long as `rows` and `columns` (sources and targets)."""
    result = np.empty(len(rows), np.float32)
    order = np.argsort(rows, kind="stable")
    edges = np.searchsorted(rows[order], np.arange(0, scorer.shape[0] + block, block))
    for i, (start, stop) in enumerate(pairwise(edges.tolist())):
        if stop > start:
            begin, places = i * block, order[start:stop]
            scores = scorer.block(begin, min(begin + block, scorer.shape[0]))
            result[places] = scores[rows[places] - begin, columns[places]]
    return result


def _blocks(
    scorer: PagePairScorer, first: int, block: int, workers: int
) -> Iterator[tuple[int, Float32Array]]:
    """Yield the blocks in order; as many are computed at a time as there are workers."""
    n = scorer.shape[0]
    waiting: deque[tuple[int, Future[Float32Array]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for begin in range(first, n, block):
            waiting.append((begin, pool.submit(scorer.block, begin, min(begin + block, n))))
            if len(waiting) > workers:
                start, scores = waiting.popleft()
                yield start, scores.result()
        for start, scores in waiting:
            yield start, scores.result()


def _best_of(scores: Float32Array, k: int, source: Hashes, target: Hashes) -> Candidates:
    """Rank each row's k best; all that ties with the k-th takes part, so that the order of input decides nothing.

    The k-th greatest of the maxima of groups of columns bounds the k-th best score from below, so that only groups
    that reach it are looked at: a partition of whole rows costs ten times as much.
    """
    n, m = scores.shape
    width = min(GROUP, max(1, m // (4 * k)))
    whole = m // width * width
    tops = np.concatenate((scores[:, :whole].reshape(n, -1, width).max(axis=2), scores[:, whole:]), axis=1)
    least = np.partition(tops, tops.shape[1] - k, axis=1)[:, tops.shape[1] - k] - 10.0**-DECIMALS
    least = np.maximum(least, np.finfo(np.float32).tiny)
    rows, groups = np.nonzero(tops >= least[:, None])
    grouped = groups < whole // width
    columns = (groups[grouped] * width)[:, None] + np.arange(width)
    rows = np.concatenate((np.repeat(rows[grouped], width), rows[~grouped]))
    columns = np.concatenate((columns.ravel(), groups[~grouped] - whole // width + whole))
    values = scores[rows, columns]
    good = values >= least[rows]
    return rank(rows[good], columns[good], values[good], n, k, source, target)


def _raise(best: Float32Array, scores: Float32Array) -> None:
    """Merge a block into the k best scores of each column, `best` [k, m], its least in the first row."""
    better = np.flatnonzero(scores.max(axis=0) > best[0])
    k = len(best)
    both = np.concatenate((best[:, better], scores[:, better]))
    both.partition(len(both) - k, axis=0)
    best[:, better] = both[len(both) - k :]
