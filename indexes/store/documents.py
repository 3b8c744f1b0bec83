"""Documents on the disk: one folder of immutable files per commit.

`documents.jsonl` holds one JSON object per line (id, text, title, metadata), `offsets.i64` where each line begins
(int64, one more than lines), `ids.txt` only the ids, `vectors.f32` the normalised vectors (float32 rows).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import orjson

from indexes.arrays import normalised
from indexes.disk import faults
from indexes.disk.reading import REMEDY, check_length, map_file
from indexes.disk.writing import FileRecord, sync, write_durably
from indexes.interface import (
    BadDocumentError,
    BadVectorError,
    DamagedError,
    Document,
    Mask,
    Matrix,
    Metadata,
    check_vectors,
)
from indexes.packed import PackedIds, repeated
from indexes.rows import Rows, name_some
from indexes.store import files as storage
from indexes.store.document_checks import read_document, read_ids, read_offsets
from indexes.store.files import SEGMENTS
from indexes.store.growing import Growing
from indexes.store.records import Manifest, Segment

Parts = Iterable[bytes | memoryview]


def storable(document: Document) -> Document:
    """Return the document as it will be read back, so that filters see the same metadata now and later.

    Raises BadDocumentError where JSON cannot hold its metadata or its text is not valid Unicode.
    """
    try:
        (document.text + document.title).encode()
        if not document.metadata:
            return document
        metadata = orjson.loads(orjson.dumps(dict(document.metadata), option=orjson.OPT_NON_STR_KEYS))
    except (TypeError, UnicodeEncodeError) as e:
        raise BadDocumentError(f"document {document.id!r} cannot be stored: {e}") from None
    return dataclasses.replace(document, metadata=metadata)


def own_vectors(manifest: Manifest, vectors: Matrix | None, ids: Sequence[str]) -> Matrix | None:
    """Return the vectors of new documents as they are stored, of length 1. Raises BadVectorError."""
    encoder = manifest.encoder
    if (vectors is None) != (encoder is None):
        raise BadVectorError("pass vectors if the collection has an encoder, and none if it has not")
    if vectors is None or encoder is None:
        return None
    return normalised(check_vectors(vectors, encoder.dim, ids))


def write_segment(
    directory: Path,
    name: str,
    documents: Sequence[Document],
    vectors: Sequence[Matrix],
    after: Sequence[str] = (),
) -> dict[str, FileRecord]:
    """Write documents durably as one segment, after those of the segments `after`; return the files' records.

    `vectors` are blocks (float32 [n, dim]) that together have one row per document. Raises OSError.
    """
    earlier = [directory / SEGMENTS / segment for segment in after]
    lengths: list[int] = []
    content: dict[str, Parts] = {
        "documents.jsonl": itertools.chain(_blocks(earlier, "documents.jsonl"), _lines(documents, lengths)),
        # The dictionary's order matters: writing the lines fills `lengths`.
        "offsets.i64": _offsets(earlier, lengths),
        "ids.txt": _ids(earlier, [d.id for d in documents]),
    }
    if vectors or any((old / "vectors.f32").exists() for old in earlier):
        new = (np.ascontiguousarray(block, dtype="<f4").data for block in vectors)
        content["vectors.f32"] = itertools.chain(_blocks(earlier, "vectors.f32"), new)
    return _write_folder(directory, name, content)


def copy_segment(
    directory: Path, name: str, segments: Sequence[Segment], ids: Sequence[str], live: Mask
) -> dict[str, FileRecord]:
    """Write the live rows of `segments` as one new segment; return the files' records.

    `live` (bool [rows]) marks them; `ids` are those of all rows. Nothing is decoded, and hardly any memory is used:
    runs of live rows are copied from mapped files. Raises OSError, DamagedError.
    """
    folders = [directory / SEGMENTS / s.name for s in segments]
    offsets = [np.fromfile(f / "offsets.i64", dtype="<i8") for f in folders]
    parts = np.split(live, np.cumsum([s.rows for s in segments])[:-1])
    sources = [(f, o, list(_runs(part))) for f, o, part in zip(folders, offsets, parts, strict=True)]
    lengths = np.concatenate([np.diff(o)[part] for o, part in zip(offsets, parts, strict=True)])
    content: dict[str, Parts] = {
        "documents.jsonl": (
            memoryview(map_file(f / "documents.jsonl"))[o[a] : o[b]]
            for f, o, runs in sources
            for a, b in runs
        ),
        "offsets.i64": [np.concatenate([[0], np.cumsum(lengths)]).astype("<i8").data],
        "ids.txt": ["\n".join(itertools.compress(ids, live.tolist())).encode()],
    }
    if (folders[0] / "vectors.f32").exists():
        content["vectors.f32"] = (
            _vectors(f).reshape(len(o) - 1, -1)[a:b].data for f, o, runs in sources for a, b in runs
        )
    return _write_folder(directory, name, content)


def _runs(live: Mask) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each run of true values in `live` (bool [rows])."""
    edges = np.flatnonzero(np.diff(live, prepend=False, append=False))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _write_folder(directory: Path, name: str, content: Mapping[str, Parts]) -> dict[str, FileRecord]:
    folder = directory / SEGMENTS / name
    folder.mkdir(parents=True, exist_ok=True)
    records = {}
    for file, parts in content.items():
        faults.point("segment.file")
        records[f"{SEGMENTS}/{name}/{file}"] = write_durably(folder / file, parts)
    for path in (folder, folder.parent):  # the commit flushes the folder above them
        sync(path)
    return records


def _blocks(folders: Sequence[Path], name: str) -> Iterator[bytes]:
    for folder in folders:
        with (folder / name).open("rb") as file:
            while block := file.read(1 << 22):
                yield block


def _lines(documents: Sequence[Document], lengths: list[int]) -> Iterator[bytes]:
    """Yield each document's line and append its length: holding all lines would take as much memory as the corpus."""
    for d in documents:
        line = orjson.dumps(
            {"id": d.id, "text": d.text, "title": d.title, "metadata": d.metadata},
            option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS,
        )
        lengths.append(len(line))
        yield line


def _offsets(earlier: Sequence[Path], lengths: Iterable[int]) -> Iterator[memoryview]:
    """Yield where each line begins, and where the last one ends."""
    begin = 0
    for folder in earlier:
        offsets = np.fromfile(folder / "offsets.i64", dtype="<i8")
        yield (offsets[:-1] + begin).data
        begin += int(offsets[-1])
    yield np.fromiter(itertools.accumulate(lengths, initial=begin), dtype="<i8").data


def _ids(earlier: Sequence[Path], ids: Sequence[str]) -> Iterator[bytes]:
    """Yield the ids, one per line, without a newline after the last."""
    for number, folder in enumerate(earlier):
        if number:
            yield b"\n"
        yield from _blocks([folder], "ids.txt")
    if ids:
        yield (b"\n" if earlier else b"") + "\n".join(ids).encode()


class StoredSegment:
    """The documents of one segment, opened; generations that have the segment in common can share it.

    The documents are mapped, so memory is used only for what is read. Opening checks the offsets, and ids and documents
    are checked when they are read. Raises DamagedError.
    """

    def __init__(self, directory: Path, segment: Segment) -> None:
        self.folder, self.rows = directory / SEGMENTS / segment.name, segment.rows
        self.path = self.folder / "documents.jsonl"
        self.mapped = map_file(self.path)
        self.offsets = read_offsets(self.folder / "offsets.i64", segment.rows, len(self.mapped))

    @functools.cached_property
    def ids(self) -> PackedIds:
        """The ids, removed ones included."""
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
        """Open the segments but for those that are `known`: open already, with the same content, in `earlier`."""
        self.segments = [(known or {}).get(s) or StoredSegment(directory, s) for s in segments]
        self._firsts = np.cumsum([0, *(s.rows for s in segments)])
        self._joined: Matrix | None = None  # the vectors of several segments, and …
        self._growing: Growing | None = None  # … the array of which they are the first rows
        self._earlier = (earlier._growing, self._shared_with(earlier)) if earlier else (None, 0)

    @classmethod
    def joined(cls, stores: Sequence[DocumentStore]) -> Self:
        """Return the documents of several opened stores, one store after the other."""
        joined = cls.__new__(cls)
        joined.segments = [segment for store in stores for segment in store.segments]
        joined._firsts = np.cumsum([0, *(segment.rows for segment in joined.segments)])
        joined._joined, joined._growing, joined._earlier = None, None, (None, 0)
        return joined

    @property
    def rows(self) -> int:
        """Number of documents, removed ones included."""
        return int(self._firsts[-1])

    @functools.cached_property
    def _ids(self) -> PackedIds:
        return PackedIds.joined([segment.ids for segment in self.segments])

    def ids(self) -> PackedIds:
        """Return all ids in row order, removed ones included. Raises DamagedError."""
        return self._ids

    def since(self, earlier: DocumentStore) -> tuple[PackedIds, PackedIds]:
        """Return the ids of the first rows, in segments that `earlier` begins with too, and those of all later rows."""
        shared, ids = self._shared_with(earlier), [segment.ids for segment in self.segments]
        return PackedIds.joined(ids[:shared]), PackedIds.joined(ids[shared:])

    def _shared_with(self, earlier: DocumentStore) -> int:
        """Return how many segments both begin with."""
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

        A single segment, as a build or a compaction leaves it, is mapped; several are read into one array, which is
        that of the earlier generation where possible. Raises DamagedError where a file is too short.
        """
        if len(self.segments) < 2:
            return [_vectors(segment.folder).reshape(-1, dim) for segment in self.segments]
        if self._joined is None:
            files = [(segment.folder / "vectors.f32", segment.rows) for segment in self.segments]
            growing, shared = self._earlier
            joined = growing.extend(int(self._firsts[shared]), files[shared:]) if growing and shared else None
            if joined is None:
                growing = Growing(self.rows, dim)
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


def _vectors(folder: Path) -> Matrix:
    return np.memmap(folder / "vectors.f32", dtype="<f4", mode="r")


def read_rows(
    directory: Path,
    manifest: Manifest,
    documents: DocumentStore,
    before: tuple[DocumentStore, Rows] | None = None,
) -> Rows:
    """Return the generation's ids, removed rows and metadata (read at the first filter).

    `before` are the documents and rows of an earlier generation: ids that it has in common with this one are known to
    be unique. Raises DamagedError.
    """
    name, ids = manifest.only_file(storage.DELETED), documents.ids()
    dead = np.fromfile(directory / name, dtype="<i8") if name else np.empty(0, dtype=np.int64)
    if len(dead) and (dead[0] < 0 or dead[-1] >= len(ids) or (dead[1:] <= dead[:-1]).any()):
        raise DamagedError(f"{directory / str(name)} does not list rows of this index, ascending: {REMEDY}")
    live = np.ones(len(ids), dtype=bool)
    live[dead] = False
    if found := _repeated(documents, live, before):
        raise DamagedError(f"{directory} holds {name_some(found)} more than once: {REMEDY}")
    rows = Rows()
    rows.restore(ids, dead, documents.metadata())
    return rows


def _repeated(documents: DocumentStore, live: Mask, before: tuple[DocumentStore, Rows] | None) -> list[str]:
    """Return the ids that two rows have which `live` (bool [rows]) marks."""
    if before is not None:
        first, later = documents.since(before[0])
        shared, was_live = len(first), before[1].mask()
        # Rows that live again, as after a checkout, may have an id that another row got meanwhile.
        if was_live is None or not (live[:shared] & ~was_live[:shared]).any():
            places, rows = first.find(later)
            twice = live[rows] & live[places + shared]
            found = later.of_rows(np.unique(places[twice]))
            return found + repeated([later], [live[shared:]])
    return repeated([documents.ids()], [live])
