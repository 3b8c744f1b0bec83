"""Opened shards as one collection: rows, documents and postings follow each other in the order of the directories."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np

from indexes.anywhere import search_settings
from indexes.arrays import check_k
from indexes.collection import Collection
from indexes.cores import cores
from indexes.dtypes import AnyArray
from indexes.hybrid import HybridIndex, OnFailure, Unavailable
from indexes.interface import (
    DuplicateIdError,
    Filter,
    IndexesError,
    Mask,
    Matrix,
    RowArray,
    RowFilter,
    RowSearch,
    ScoreArray,
)
from indexes.packed import repeated
from indexes.rows import Rows, name_some
from indexes.sharded import agreement
from indexes.store.documents import DocumentStore
from indexes.stored_vectors import MakeScan
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.forward_index import ForwardIndex
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from indexes.text.postings import PostingsSegment
from indexes.text.queries import Queries
from indexes.text.scoring import Bm25Scorer, WeightedTerms
from indexes.text.search import TextSearch
from indexes.vectors.faiss_index import FaissIndex

T = TypeVar("T")
R = TypeVar("R")


class Lanes:
    """Threads, at most one per shard and per core, that query the shards of one search."""

    def __init__(self, shards: int) -> None:
        threads = min(shards, cores())
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="shard") if threads > 1 else None

    def each(self, call: Callable[[T], R], parts: Iterable[T]) -> list[R]:
        """Return the result of `call` for each part, in order; raise the first error of a call."""
        return list((self._pool.map if self._pool else map)(call, parts))


class ShardedVectors:
    """A RowSearch over the vectors of all shards; rows are numbered through all shards, in their order."""

    def __init__(self, shards: Sequence[FaissIndex], firsts: Sequence[int], rows: Rows, lanes: Lanes) -> None:
        """`firsts` [shards + 1]: each shard's first row in `rows`, then the number of rows."""
        self._shards, self._firsts, self._rows, self._lanes = shards, firsts, rows, lanes

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), [n, k]. Raises the errors of `FaissIndex.search_rows`."""
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

    def _best(
        self, queries: Queries, k: int, allowed: Mask | None, parameters: Bm25Parameters
    ) -> tuple[RowArray, ScoreArray]:
        return self._best_in_steps(queries, k, allowed, parameters)

    def _offer(self, part: slice, terms: WeightedTerms, allowed: Mask | None, keys: AnyArray) -> None:
        def ask(group: slice) -> AnyArray:
            best = np.zeros_like(keys)
            super(ShardedScorer, self)._offer(group, terms, allowed, best)
            return best

        # A key encodes the score and the row, so the greatest keys are the best overall, ties in row order.
        candidates = np.concatenate(self._lanes.each(ask, self._groups), axis=1)
        keys[:] = np.sort(candidates, axis=1)[:, -keys.shape[1] :]


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


class ShardedCollection(Collection):
    """Several collections, searched like a single one with the documents of all.

    Exact searches return the same ids, order and scores as that single one. `directory` is the first shard's; `remarks`
    list the shards' settings that are not used, and `absent` says why a shard could not be opened.
    """

    def __init__(
        self,
        shards: Sequence[Collection],
        on_failure: OnFailure = "degrade",
        absent: Mapping[Path, str] | None = None,
    ) -> None:
        """Join opened shards. Raises IndexesError if they do not agree, DuplicateIdError if an id is in two of them."""
        named = [(shard.directory, shard.manifest) for shard in shards]
        agreement.check(named)
        self.shards, self.absent = tuple(shards), absent or {}
        self.directory, lanes = shards[0].directory, Lanes(len(shards))
        self.manifest, self.remarks = agreement.joint(named)
        self.documents = DocumentStore.joined([shard.documents for shard in shards])
        firsts = np.cumsum([0, *(len(shard.rows.ids) for shard in shards)]).tolist()
        self.rows = _rows(shards, firsts, self.documents)
        self.stored_forward, self._fields = _forward(shards, firsts), set()
        self.text = self._joined_text(lanes)
        vectors = self._joined_vectors(firsts, lanes)
        self.hybrid = HybridIndex(self.rows, vectors, self.text, search_settings(self.manifest, on_failure))

    def _joined_text(self, lanes: Lanes) -> TextSearch:
        analysis, bm25 = self.manifest.analysis, self.manifest.bm25
        if not bm25.fields:
            plain = [shard.text for shard in self.shards if isinstance(shard.text, Bm25Index)]
            return ShardedBm25(plain, self.rows, analysis, bm25, lanes)
        by_field = [shard.text.folders for shard in self.shards if isinstance(shard.text, FieldsIndex)]
        indexes = [
            ShardedBm25([folders[name] for folders in by_field], self.rows, analysis, None, lanes)
            for name in by_field[0]
        ]
        return FieldsIndex(indexes, self.rows, analysis, bm25)

    def _joined_vectors(self, firsts: Sequence[int], lanes: Lanes) -> RowSearch | None:
        if self.manifest.encoder is None:
            return None
        retrievers = [shard.hybrid.vectors for shard in self.shards]
        missing = next((vectors for vectors in retrievers if isinstance(vectors, Unavailable)), None)
        present = [vectors for vectors in retrievers if isinstance(vectors, FaissIndex)]
        return missing or ShardedVectors(present, firsts, self.rows, lanes)


def open_shards(
    directories: Sequence[Path],
    *,
    on_failure: OnFailure = "degrade",
    scan: MakeScan | None = None,
    before: Mapping[Path, Collection] | None = None,
    verify: bool = True,
) -> ShardedCollection:
    """Return the last generations of all directories as one collection.

    A directory that cannot be opened is left out and named in `absent`; if `on_failure` is "fail" or no directory is
    left, the error of `Collection.open` is raised. `scan`, `verify` and, for each directory, `before` are as in
    `Collection.open`. Raises the errors of `ShardedCollection`, too.
    """

    before = before or {}

    def load(directory: Path) -> Collection | IndexesError | OSError:
        try:
            return Collection.open(
                directory, on_failure=on_failure, scan=scan, before=before.get(directory), verify=verify
            )
        except (IndexesError, OSError) as e:
            return e

    with ThreadPoolExecutor(min(len(directories), cores()), thread_name_prefix="opening") as pool:
        results = list(pool.map(load, directories))
    opened = [shard for shard in results if isinstance(shard, Collection)]
    absent = {d: e for d, e in zip(directories, results, strict=True) if isinstance(e, Exception)}
    if absent and (on_failure == "fail" or not opened):
        raise next(iter(absent.values()))
    return ShardedCollection(opened, on_failure, {d: str(e) for d, e in absent.items()})


def _rows(shards: Sequence[Collection], firsts: Sequence[int], documents: DocumentStore) -> Rows:
    """Return the rows of all shards. Raises DuplicateIdError, naming directories, if an id is in two of them."""
    dead = np.concatenate([shard.rows.dead + first for shard, first in zip(shards, firsts, strict=False)])
    parts = [shard.documents.ids() for shard in shards]
    if ids := repeated(parts, [shard.rows.mask() for shard in shards]):
        where = [str(shard.directory) for shard in shards if ids[0] in shard.rows]
        raise DuplicateIdError(
            f"{' and '.join(where)} both hold {name_some(ids)}: delete one of the two with "
            "`linker index delete`"
        )
    for part in parts:
        part.forget()
    rows = Rows()
    rows.restore(documents.ids(), dead, documents.metadata())
    return rows


def _forward(shards: Sequence[Collection], firsts: Sequence[int]) -> ForwardIndex | None:
    segments = []
    for shard, first in zip(shards, firsts, strict=False):
        if shard.rows.ids and not shard.manifest.positions:
            return None
        if shard.rows.ids:
            segments += [dataclasses.replace(s, first=s.first + first) for s in shard.forward.segments]
    return ForwardIndex(shards[0].manifest.analysis, None, segments) if segments else None
