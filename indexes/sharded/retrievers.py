"""Both retrievers over shards, each queried in its own thread: the compiled loops run without the GIL."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from indexes.arrays import check_k
from indexes.cores import cores
from indexes.dtypes import AnyArray
from indexes.interface import Filter, Mask, Matrix, RowArray, RowFilter, ScoreArray
from indexes.rows import Rows
from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from indexes.text.postings import PostingsSegment
from indexes.text.scoring import AskedTerms, Bm25Scorer
from indexes.vectors.faiss_index import FaissIndex

T = TypeVar("T")
R = TypeVar("R")


class Lanes:
    """Threads, at most one per shard and per core, that query the shards of one search."""

    def __init__(self, shards: int) -> None:
        threads = min(shards, cores())
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="shard") if threads > 1 else None

    def each(self, call: Callable[[T], R], parts: Iterable[T]) -> list[R]:
        """Return `call` of each part, in order; raises the error of the first failing call."""
        return list((self._pool.map if self._pool else map)(call, parts))


class ShardedVectors:
    """RowSearch over the vectors of shards, whose rows are concatenated in the order of the shards."""

    def __init__(self, shards: Sequence[FaissIndex], firsts: Sequence[int], rows: Rows, lanes: Lanes) -> None:
        """`firsts` [shards + 1]: each shard's first row in `rows`, then the number of rows."""
        self._shards, self._firsts, self._rows, self._lanes = shards, firsts, rows, lanes

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k], filled with −1 and −inf.

        `queries` is float32 [n, dim]. Raises the same errors as `FaissIndex.search_rows`.
        """
        check_k(k)
        allowed = None if where is None else self._rows.mask(where)

        def ask(number: int) -> tuple[RowArray, ScoreArray]:
            first, end = self._firsts[number : number + 2]
            part = None if allowed is None else RowFilter((), allowed[first:end])
            rows, scores = self._shards[number].search_rows(queries, k, part)
            return np.where(rows < 0, rows, rows + first), scores

        parts = self._lanes.each(ask, range(len(self._shards)))
        rows, scores = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
        # Rows ascend from shard to shard, so a stable sort keeps equal scores in row order.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)


class ShardedScorer(Bm25Scorer):
    """Ranks the rows of all shards with global statistics; each shard's postings are read in a thread."""

    def __init__(self, shards: Sequence[Sequence[PostingsSegment]], lanes: Lanes) -> None:
        """`shards`: the segments of each shard, whose rows are concatenated."""
        super().__init__([segment for segments in shards for segment in segments])
        ends = np.cumsum([0, *map(len, shards)]).tolist()
        self._groups = [slice(a, b) for a, b in itertools.pairwise(ends) if b > a]
        self._lanes = lanes

    def _offer(self, part: slice, asked: AskedTerms, allowed: Mask | None, keys: AnyArray) -> None:
        def ask(group: slice) -> AnyArray:
            own = np.zeros_like(keys)
            super(ShardedScorer, self)._offer(group, asked, allowed, own)
            return own

        # A key encodes the score and the row, so the greatest keys are the best overall, ties in row order.
        found = np.concatenate(self._lanes.each(ask, self._groups), axis=1)
        keys[:] = np.sort(found, axis=1)[:, -keys.shape[1] :]


class ShardedBm25(Bm25Index):
    """The BM25 indexes of shards as one, for reading: its scores are those of one index over all documents."""

    def __init__(
        self,
        shards: Sequence[Bm25Index],
        rows: Rows,
        analysis: AnalysisSettings,
        parameters: Bm25Parameters | None,
        lanes: Lanes,
    ) -> None:
        """`rows` numbers the documents of all shards, one shard after the other."""
        segments: list[list[PostingsSegment]] = []
        first = 0
        for shard in shards:
            scorer = shard.scorer()
            segments.append([dataclasses.replace(s, first=s.first + first) for s in scorer.segments])
            first += scorer.documents
        self._start(analysis, None, [s for part in segments for s in part], rows, parameters)
        self._refusal = "it spans several directories, which are open for reading only"
        self._check_rows()
        self._scorer = ShardedScorer(segments, lanes)
