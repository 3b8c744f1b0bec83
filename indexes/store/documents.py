"""Reads the documents written by `segments.py`, by row, and the rows of a generation."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Self

import numpy as np

from indexes.arrays import distinct
from indexes.disk.reading import REMEDY, check_length, map_file
from indexes.interface import DamagedError, Document, Mask, Matrix, Metadata
from indexes.packed import PackedIds, repeated
from indexes.rows import Rows, name_some
from indexes.store import files as storage
from indexes.store.document_checks import read_document, read_ids, read_offsets
from indexes.store.files import SEGMENTS
from indexes.store.records import Manifest, Segment

ROOM = 4  # an array has room for a quarter more rows than needed; only written rows take memory


class StoredSegment:
    """The documents of one opened segment, which can be shared by all generations that contain it.

    The documents are mapped, so only parts that are read take memory. Opening checks the offsets; ids and documents
    are checked when read. Raises DamagedError.
    """

    def __init__(self, directory: Path, segment: Segment) -> None:
        self.folder, self.rows = directory / SEGMENTS / segment.name, segment.rows
        self.path = self.folder / "documents.jsonl"
        self.mapped = map_file(self.path)
        self.offsets = read_offsets(self.folder / "offsets.i64", segment.rows, len(self.mapped))

    @functools.cached_property
    def ids(self) -> PackedIds:
        """The ids, including removed ones."""
        return read_ids(self.folder / "ids.txt", self.rows)


class DocumentStore:
    """Reads documents by row. Raises DamagedError."""

    def __init__(
        self,
        directory: Path,
        segments: Sequence[Segment],
        known: Mapping[Segment, StoredSegment] | None = None,
        earlier: DocumentStore | None = None,
    ) -> None:
        """Open `segments`, except those already open (`known`), and reuse vectors that `earlier` has in memory."""
        self.segments = [(known or {}).get(s) or StoredSegment(directory, s) for s in segments]
        self._firsts = np.cumsum([0, *(s.rows for s in segments)])
        self._joined: Matrix | None = None  # the vectors of several segments, in one block
        self._growing: GrowingVectors | None = None  # the array that begins with these vectors
        self._earlier = (earlier._growing, self._shared_with(earlier)) if earlier else (None, 0)

    @classmethod
    def joined(cls, stores: Sequence[DocumentStore]) -> Self:
        """Return the documents of several opened stores, one store after the other."""
        joined = cls.__new__(cls)
        joined.segments = [segment for store in stores for segment in store.segments]
        joined._firsts = np.cumsum([0, *(segment.rows for segment in joined.segments)])
        joined._joined, joined._growing, joined._earlier = None, None, (None, 0)
        return joined

    def in_other_segments(self, segments: Sequence[Segment], opened: Mapping[Segment, StoredSegment]) -> Self:
        """Return the same rows in other segments, all of them `opened`; the vectors in memory are shared."""
        new = self.joined([])
        new.segments = [opened[segment] for segment in segments]
        new._firsts = np.cumsum([0, *(s.rows for s in segments)])
        new._joined, new._growing = self._joined, self._growing
        return new

    @property
    def rows(self) -> int:
        """Number of documents, including removed ones."""
        return int(self._firsts[-1])

    @functools.cached_property
    def _ids(self) -> PackedIds:
        return PackedIds.joined([segment.ids for segment in self.segments])

    def ids(self) -> PackedIds:
        """Return all ids in row order, including removed ones. Raises DamagedError."""
        return self._ids

    def since(self, earlier: DocumentStore) -> tuple[PackedIds, PackedIds]:
        """Return the ids in the initial segments that are shared with `earlier`, and the ids of all later rows."""
        shared, ids = self._shared_with(earlier), [segment.ids for segment in self.segments]
        return PackedIds.joined(ids[:shared]), PackedIds.joined(ids[shared:])

    def _shared_with(self, earlier: DocumentStore) -> int:
        pairs = zip(self.segments, earlier.segments, strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs))

    def _all(self) -> Iterator[Document]:
        for segment in self.segments:
            pairs = itertools.pairwise(segment.offsets.tolist())
            for id_, (start, end) in zip(segment.ids, pairs, strict=True):
                check_length(segment.mapped, segment.path)
                yield read_document(segment.mapped[start:end], id_, segment.path)

    def metadata(self) -> Iterator[Metadata]:
        """Yield every row's metadata, in row order. Raises DamagedError."""
        return (document.metadata for document in self._all())

    def texts(self) -> Iterator[str]:
        """Yield the indexed text of every row, in row order. Raises DamagedError."""
        return (document.full_text for document in self._all())

    def vectors(self, dim: int) -> list[Matrix]:
        """Return all vectors, in row order, as at most one block (float32 [rows, dim]).

        A single segment, as a build or a compaction leaves it, is mapped; several are read into one array, the
        earlier generation's array if possible. Raises DamagedError if a file is too short.
        """
        if len(self.segments) < 2:
            return [mapped_vectors(segment.folder).reshape(-1, dim) for segment in self.segments]
        if self._joined is None:
            files = [(segment.folder / "vectors.f32", segment.rows) for segment in self.segments]
            growing, shared = self._earlier
            joined = growing.extend(int(self._firsts[shared]), files[shared:]) if growing and shared else None
            if joined is None:
                growing = GrowingVectors(self.rows, dim)
                joined = growing.extend(0, files)
            assert joined is not None
            self._joined, self._growing = joined, growing
        return [self._joined]

    def __getitem__(self, row: int) -> Document:
        number = int(np.searchsorted(self._firsts, row, side="right")) - 1
        segment = self.segments[number]
        start, end = segment.offsets[row - self._firsts[number] :][:2].tolist()
        check_length(segment.mapped, segment.path)
        return read_document(segment.mapped[start:end], self._ids[row], segment.path)


def mapped_vectors(folder: Path) -> Matrix:
    """Return the vectors of a segment's folder, mapped, float32 [rows × dim]."""
    return np.memmap(folder / "vectors.f32", dtype="<f4", mode="r")


def read_rows(
    directory: Path,
    manifest: Manifest,
    documents: DocumentStore,
    before: tuple[DocumentStore, Rows] | None = None,
) -> Rows:
    """Return the generation's ids, removed rows and metadata (read when a filter first needs it).

    `before` has the documents and rows of an earlier generation: the ids that both share are known to be unique. Raises
    DamagedError.
    """
    name, ids = manifest.only_file(storage.DELETED), documents.ids()
    dead = np.fromfile(directory / name, dtype="<i8") if name else np.empty(0, dtype=np.int64)
    if len(dead) and (dead[0] < 0 or dead[-1] >= len(ids) or (dead[1:] <= dead[:-1]).any()):
        raise DamagedError(
            f"{directory / str(name)} does not list existing rows in ascending order: {REMEDY}"
        )
    live = np.ones(len(ids), dtype=bool)
    live[dead] = False
    if found := _repeated(documents, live, before):
        raise DamagedError(f"{directory} contains {name_some(found)} more than once: {REMEDY}")
    rows = Rows()
    rows.restore(ids, dead, documents.metadata())
    return rows


def _repeated(documents: DocumentStore, live: Mask, before: tuple[DocumentStore, Rows] | None) -> list[str]:
    """Return the ids shared by two rows that `live` (bool [rows]) marks."""
    if before is not None:
        first, later = documents.since(before[0])
        shared, was_live = len(first), before[1].mask()
        # Revived rows, as after a checkout, may have an id that has since been given to another row.
        if was_live is None or not (live[:shared] & ~was_live[:shared]).any():
            places, rows = first.find(later)
            twice = live[rows] & live[places + shared]
            ids = later.of_rows(distinct(places[twice]))
            return ids + repeated([later], [live[shared:]])
    return repeated([documents.ids()], [live])


class GrowingVectors:
    """An array of vectors, each written once; a generation uses the first ones. Several threads may extend it."""

    def __init__(self, rows: int, dim: int) -> None:
        """Start without rows, with room for somewhat more than `rows`."""
        self._array = np.empty((rows + rows // ROOM + 1, dim), dtype="<f4")
        self._written = 0
        self._lock = threading.Lock()

    def extend(self, first: int, parts: Iterable[tuple[Path, int]]) -> Matrix | None:
        """Return the rows before `first`, followed by those of all `parts`: float32 [rows, dim], read-only.

        `parts` are files of vectors and their numbers of rows. Return None if the array has no room for them, or holds
        different rows there. Raises DamagedError if a file is too short.
        """
        with self._lock:
            end = first
            for path, rows in parts:
                begin, end = end, end + rows
                if begin > self._written or end > len(self._array):
                    return None
                with path.open("rb") as file:
                    common = max(min(self._written, end), begin)
                    known, new = self._array[begin:common], self._array[common:end]
                    if not np.array_equal(_read(file, np.empty_like(known)).view("<u4"), known.view("<u4")):
                        return None
                    _read(file, new)
                self._written = max(self._written, end)
            array = self._array[:end]
            array.flags.writeable = False
            return array


def _read(file: BufferedReader, into: Matrix) -> Matrix:
    """Fill an array from a file, and return it. Raises DamagedError if the file is too short."""
    if into.size and file.readinto(into.data) != into.nbytes:
        raise DamagedError(f"{file.name} is too short: {REMEDY}")
    return into
