"""Finding the best target pages of each source page, block by block; a hash of the two pages breaks ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import xxhash

from indexes.cores import cores
from indexes.dtypes import Float32Array, Int32Array, Int64Array
from linker.crosslingual.pages.chunks import in_order

Hashes = npt.NDArray[np.uint64]
# Scores that agree to this many decimals count as equal: the order of summation affects later digits.
DECIMALS = 6
BLOCK = 256
MERGED = 32  # rows merged at a time
GROUP = 64  # columns per group, of which only the maximum is examined at first
DEPTH = 100  # candidates per source before re-ranking
_MIX = np.uint64(0x9E3779B97F4A7C15)


class PagePairScorer(Protocol):
    """Scores of all pairs, computed in blocks; higher is closer, and 0 means nothing in common."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and target pages."""
        ...

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        ...


@dataclass(frozen=True, eq=False)
class Candidates:
    """Ranked targets, int64 [n, k], padded with −1, and their positive scores, float32 [n, k], with −inf."""

    targets: Int64Array
    scores: Float32Array

    @classmethod
    def none(cls, n: int, k: int) -> Candidates:
        """Return empty lists of `k` candidates for each of `n` sources."""
        return cls(np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, np.float32))

    def place(self, n: int, rows: Int64Array, columns: Int64Array) -> Candidates:
        """Return the candidates in the rows of `n` sources: row i becomes `rows[i]`, and target j `columns[j]`."""
        moved = Candidates.none(n, self.targets.shape[1])
        moved.targets[rows] = np.where(self.targets >= 0, columns[self.targets], -1)
        moved.scores[rows] = self.scores
        return moved

    def cut(self, k: int) -> Candidates:
        """Return the first k candidates for each source: [n, k]."""
        return Candidates(self.targets[:, :k], self.scores[:, :k])

    def pairs(self) -> tuple[Int64Array, Int64Array, Float32Array]:
        """Return int64 sources, int64 targets and float32 scores of all candidates in row order, each [pairs]."""
        rows, columns = np.nonzero(self.targets >= 0)
        return rows, self.targets[rows, columns], self.scores[rows, columns]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The candidates from a pass over all pairs, and each page's mean score with its nearest neighbours.

    `forward` float32 [sources] and `backward` float32 [targets] are means over the top k, missing ones counting as 0.
    `holders` int32 [k, targets]: the sources with the top k scores of each target, in no particular order, padded
    with −1.
    """

    candidates: Candidates
    forward: Float32Array
    backward: Float32Array
    holders: Int32Array


def hashes(ids: Sequence[str]) -> Hashes:
    """Return hashes of the ids: uint64 [n], the same on every machine."""
    return np.fromiter(
        (xxhash.xxh3_64_intdigest(i.encode("utf-8", "surrogatepass")) for i in ids), np.uint64, len(ids)
    )


def tie_breaks(source: Hashes, target: Hashes) -> Hashes:
    """Return hashes of pairs of ids from the hashes of both ids: uint64; the two arguments broadcast."""
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
    """Return the top `k` of each of `n` sources, by score to six decimals, then by the hash of the ids.

    `rows`, `columns` and `scores`: [pairs], in any order; pairs that score 0 or less are left out. `source` and
    `target`: hashes of the ids, uint64 [n] and [m].
    """
    good = scores > 0
    rows, columns, scores = rows[good], columns[good], scores[good]
    ties = tie_breaks(source[rows], target[columns])
    order = np.lexsort((ties, -np.round(scores.astype(np.float64), DECIMALS), rows))
    rows, columns, scores = rows[order], columns[order], scores[order]
    ranks = np.arange(len(rows)) - np.searchsorted(rows, np.arange(n))[rows]
    top = ranks < k
    result = Candidates.none(n, k)
    result.targets[rows[top], ranks[top]] = columns[top]
    result.scores[rows[top], ranks[top]] = scores[top]
    return result


@dataclass
class PassState:
    """The state of a pass: candidates of the first `done` sources; `best` float32 [k, m], each target's top k scores.

    The lowest of the top k scores is in the first row. `holders` int32 [k, m]: the sources that have them, or −1.
    """

    found: Candidates
    best: Float32Array
    holders: Int32Array
    done: int = 0


class Keeper(Protocol):
    """Saves the state of a pass, so that the pass can resume after an interruption."""

    def restore(self, progress: PassState) -> None:
        """Fill `progress` with the saved state."""
        ...

    def keep(self, progress: PassState) -> None:
        """Save the state if enough time has passed since the last save."""
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
    advance: Callable[[int], object] = lambda count: None,
) -> Neighbours:
    """Return the `depth` best targets of each source, and both mean scores with the `k` nearest, in one pass.

    Memory: one block float32 [block, targets] per worker (default: one worker per core), and one more. `advance` is
    called with the number of sources in each block.
    """
    n, m = scorer.shape
    depth = min(depth, m)
    source, target = hashes(source_ids), hashes(target_ids)
    candidates = Candidates.none(n, depth)
    progress = PassState(candidates, np.zeros((k, m), np.float32), np.full((k, m), -1, np.int32))
    if checkpoint:
        checkpoint.restore(progress)
        advance(progress.done)

    def compute(begin: int) -> tuple[Float32Array, Candidates]:
        scores = scorer.block(begin, min(begin + block, n))
        return scores, _best_of(scores, depth, source[begin : begin + block], target)

    begins, threads = range(progress.done, n, block), workers or cores()
    with ThreadPoolExecutor(threads) as pool:
        for begin, (scores, part) in zip(begins, in_order(pool, compute, begins, threads), strict=True):
            rows = slice(begin, begin + len(scores))
            candidates.targets[rows], candidates.scores[rows] = part.targets, part.scores
            _raise(progress, scores, begin)
            progress.done += len(scores)
            advance(len(scores))
            if checkpoint:
                checkpoint.keep(progress)
    forward = np.maximum(candidates.scores[:, :k], 0).sum(axis=1) / max(1, min(k, m))
    backward = progress.best.sum(axis=0) / max(1, min(k, n))
    return Neighbours(candidates, forward, backward, progress.holders)


def _best_of(scores: Float32Array, k: int, source: Hashes, target: Hashes) -> Candidates:
    """Rank the top k of each row; all ties with the k-th are compared, so that the input order has no effect.

    The k-th greatest maximum of the groups of columns bounds the k-th best score from below, so only groups that reach
    it are examined: partitioning whole rows costs ten times as much.
    """
    n, m = scores.shape
    width = min(GROUP, max(1, m // (4 * k)))
    count = m // width
    whole = count * width
    # Group g has the columns g, g + count, g + 2 count …, so that maxima are taken over whole vectors.
    tops = np.concatenate((scores[:, :whole].reshape(n, width, -1).max(axis=1), scores[:, whole:]), axis=1)
    least = np.partition(tops, tops.shape[1] - k, axis=1)[:, tops.shape[1] - k] - 10.0**-DECIMALS
    least = np.maximum(least, np.finfo(np.float32).tiny)
    rows, groups = np.nonzero(tops >= least[:, None])
    grouped = groups < count
    columns = groups[grouped][:, None] + count * np.arange(width)
    rows = np.concatenate((np.repeat(rows[grouped], width), rows[~grouped]))
    columns = np.concatenate((columns.ravel(), groups[~grouped] - count + whole))
    values = scores[rows, columns]
    good = values >= least[rows]
    return rank(rows[good], columns[good], values[good], n, k, source, target)


def _raise(progress: PassState, scores: Float32Array, begin: int) -> None:
    """Merge a block from `begin` into each column's top k, a few rows at a time, to update few columns."""
    k = len(progress.best)
    for start in range(0, len(scores), MERGED):
        part = scores[start : start + MERGED]
        better = np.flatnonzero(part.max(axis=0) > progress.best[0])
        both = np.concatenate((progress.best[:, better], part[:, better]))
        sources = np.arange(begin + start, begin + start + len(part), dtype=np.int32)
        holders = np.concatenate(
            (progress.holders[:, better], np.broadcast_to(sources[:, None], (len(part), len(better))))
        )
        order = np.argpartition(both, len(both) - k, axis=0)[len(both) - k :]
        progress.best[:, better] = np.take_along_axis(both, order, axis=0)
        progress.holders[:, better] = np.take_along_axis(holders, order, axis=0)
