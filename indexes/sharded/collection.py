"""Opened shards as one collection: rows, documents and postings follow each other in the order of the directories."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from indexes.anywhere import search_settings
from indexes.collection import Collection
from indexes.cores import cores
from indexes.hybrid import HybridIndex, OnFailure, Unavailable
from indexes.interface import DuplicateIdError, IndexesError, RowSearch
from indexes.packed import repeated
from indexes.rows import Rows, name_some
from indexes.sharded import agreement
from indexes.sharded.retrievers import Lanes, ShardedBm25, ShardedVectors
from indexes.store.documents import DocumentStore
from indexes.stored_vectors import MakeScan
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.forward_index import ForwardIndex
from indexes.text.search import TextSearch
from indexes.vectors.faiss_index import FaissIndex


class ShardedCollection(Collection):
    """Several collections, searched like a single one with the documents of all.

    Exact searches return the ids, order and scores of that single one. `directory` is the first shard's; `remarks`
    list the shards' settings that are left out, and `absent` says why a shard could not be opened.
    """

    def __init__(
        self,
        shards: Sequence[Collection],
        on_failure: OnFailure = "degrade",
        absent: Mapping[Path, str] | None = None,
    ) -> None:
        """Raise IndexesError if the shards do not agree, DuplicateIdError if an id is in two of them."""
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
        found = [shard.hybrid.vectors for shard in self.shards]
        missing = next((vectors for vectors in found if isinstance(vectors, Unavailable)), None)
        own = [vectors for vectors in found if isinstance(vectors, FaissIndex)]
        return missing or ShardedVectors(own, firsts, self.rows, lanes)


def open_shards(
    directories: Sequence[Path],
    *,
    on_failure: OnFailure = "degrade",
    scan: MakeScan | None = None,
    before: Mapping[Path, Collection] | None = None,
    verify: bool = True,
) -> ShardedCollection:
    """Return the last generations of all directories as one collection.

    A directory that cannot be opened is left out and named in `absent`, unless `on_failure` is "fail" or no directory
    is left; `scan`, `verify` and, for each directory, `before` are as in `Collection.open`. Raises the errors of
    `Collection.open` then, and those of `ShardedCollection`.
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
        found = list(pool.map(load, directories))
    opened = [shard for shard in found if isinstance(shard, Collection)]
    absent = {d: e for d, e in zip(directories, found, strict=True) if isinstance(e, Exception)}
    if absent and (on_failure == "fail" or not opened):
        raise next(iter(absent.values()))
    return ShardedCollection(opened, on_failure, {d: str(e) for d, e in absent.items()})


def _rows(shards: Sequence[Collection], firsts: Sequence[int], documents: DocumentStore) -> Rows:
    """Return the rows of all shards. Raises DuplicateIdError, naming directories, if an id is in two of them."""
    dead = np.concatenate([shard.rows.dead + first for shard, first in zip(shards, firsts, strict=False)])
    parts = [shard.documents.ids() for shard in shards]
    if found := repeated(parts, [shard.rows.mask() for shard in shards]):
        where = [str(shard.directory) for shard in shards if found[0] in shard.rows]
        raise DuplicateIdError(
            f"{' and '.join(where)} both hold {name_some(found)}: delete one of the two with "
            "`linker index delete`"
        )
    for part in parts:
        part.forget()
    rows = Rows()
    rows.restore(documents.ids(), dead, documents.metadata())
    return rows


def _forward(shards: Sequence[Collection], firsts: Sequence[int]) -> ForwardIndex | None:
    """Return the stored forward indexes as one; None if a shard with documents has none."""
    segments = []
    for shard, first in zip(shards, firsts, strict=False):
        if shard.rows.ids and not shard.manifest.positions:
            return None
        if shard.rows.ids:
            segments += [dataclasses.replace(s, first=s.first + first) for s in shard.forward.segments]
    return ForwardIndex(shards[0].manifest.analysis, None, segments) if segments else None
