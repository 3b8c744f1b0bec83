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
    RowArray,
    check_vectors,
)
from indexes.packed import PackedIds, repeated
from indexes.rows import Rows, name_some
from indexes.store import files as storage
from indexes.store.document_checks import read_document, read_ids, read_offsets
from indexes.store.files import SEGMENTS
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
    for path in (folder, folder.parent, directory):
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


class DocumentStore:
    """Reads documents by row; the files are mapped, so memory is used only for what is read.

    Opening checks the offsets, and ids and documents are checked when they are read. Raises DamagedError.
    """

    def __init__(self, directory: Path, segments: Sequence[Segment]) -> None:
        self._folders = [directory / SEGMENTS / s.name for s in segments]
        self._firsts = np.cumsum([0, *(s.rows for s in segments)])
        self._maps = [map_file(f / "documents.jsonl") for f in self._folders]
        self._offsets = [
            read_offsets(f / "offsets.i64", s.rows, len(mapped))
            for f, s, mapped in zip(self._folders, segments, self._maps, strict=True)
        ]

    @classmethod
    def joined(cls, stores: Sequence[DocumentStore]) -> Self:
        """Return the documents of several opened stores, one store after the other."""
        joined = cls.__new__(cls)
        joined._folders = [folder for store in stores for folder in store._folders]
        joined._firsts = np.cumsum([0, *(n for store in stores for n in np.diff(store._firsts).tolist())])
        joined._maps = [mapped for store in stores for mapped in store._maps]
        joined._offsets = [offsets for store in stores for offsets in store._offsets]
        joined.__dict__["_ids"] = PackedIds.joined([store._ids for store in stores])
        return joined

    @property
    def rows(self) -> int:
        """Number of documents, removed ones included."""
        return int(self._firsts[-1])

    @functools.cached_property
    def _ids(self) -> PackedIds:
        counts = np.diff(self._firsts).tolist()
        parts = [read_ids(f / "ids.txt", count) for f, count in zip(self._folders, counts, strict=True)]
        return parts[0] if len(parts) == 1 else PackedIds.joined(parts)

    def ids(self) -> Sequence[str]:
        """Return all ids in row order, removed ones included. Raises DamagedError."""
        return self._ids

    def _all(self) -> Iterator[Document]:
        ends = zip(self._firsts.tolist(), self._folders, self._maps, self._offsets, strict=False)
        for first, folder, mapped, offsets in ends:
            path, ids = folder / "documents.jsonl", self._ids[first : first + len(offsets) - 1]
            for id_, (start, end) in zip(ids, itertools.pairwise(offsets.tolist()), strict=True):
                check_length(mapped, path)
                yield read_document(mapped[start:end], id_, path)

    def metadata(self) -> Iterator[Metadata]:
        """Yield every row's metadata, in row order. Raises DamagedError."""
        return (document.metadata for document in self._all())

    def texts(self) -> Iterator[str]:
        """Yield the indexed text of every row, in row order. Raises DamagedError."""
        return (document.full_text for document in self._all())

    def vectors(self, dim: int) -> list[Matrix]:
        """Return all vectors, in row order, as at most one block (float32 [rows, dim]).

        A single segment, as a build or a compaction leaves it, is mapped; several are read into one array. Raises
        DamagedError where a file is too short.
        """
        if len(self._folders) < 2:
            return [_vectors(f).reshape(-1, dim) for f in self._folders]
        joined = np.empty((self.rows, dim), dtype="<f4")
        for folder, first, end in zip(self._folders, self._firsts, self._firsts[1:], strict=False):
            path, part = folder / "vectors.f32", joined[first:end]
            with path.open("rb") as file:
                if file.readinto(part.data) != part.nbytes:
                    raise DamagedError(f"{path} is too short: {REMEDY}")
        return [joined]

    def __getitem__(self, row: int) -> Document:
        segment = int(np.searchsorted(self._firsts, row, side="right")) - 1
        start, end = self._offsets[segment][row - self._firsts[segment] :][:2].tolist()
        path, mapped = self._folders[segment] / "documents.jsonl", self._maps[segment]
        check_length(mapped, path)
        return read_document(mapped[start:end], self._ids[row], path)


def _vectors(folder: Path) -> Matrix:
    return np.memmap(folder / "vectors.f32", dtype="<f4", mode="r")


def read_rows(directory: Path, manifest: Manifest, documents: DocumentStore) -> Rows:
    """Return the generation's ids, removed rows and metadata (read at the first filter). Raises DamagedError."""
    name, ids = manifest.only_file(storage.DELETED), documents.ids()
    dead = np.fromfile(directory / name, dtype="<i8") if name else np.empty(0, dtype=np.int64)
    if len(dead) and (dead[0] < 0 or dead[-1] >= len(ids) or (dead[1:] <= dead[:-1]).any()):
        raise DamagedError(f"{directory / str(name)} does not list rows of this index, ascending: {REMEDY}")
    _check_unique(directory, ids, dead)
    rows = Rows()
    rows.restore(ids, dead, documents.metadata())
    return rows


def _check_unique(directory: Path, ids: Sequence[str], dead: RowArray) -> None:
    """Raise DamagedError if two live rows have the same id."""
    live = np.ones(len(ids), dtype=bool)
    live[dead] = False
    if found := repeated([ids], [live]):
        raise DamagedError(f"{directory} holds {name_some(found)} more than once: {REMEDY}")
