"""A stored collection: documents, vectors and BM25 of one committed generation, opened for reading."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from indexes.anywhere import Phrases, search_settings
from indexes.disk.reading import is_whole, mapping_of
from indexes.dtypes import Float32Array
from indexes.filters import unknown_field
from indexes.hybrid import HybridIndex, OnFailure, Unavailable
from indexes.interface import (
    BackendUnavailableError,
    DamagedError,
    Document,
    Filter,
    Matrix,
    MissingExtraError,
    RowArray,
    RowSearch,
)
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store.documents import DocumentStore, StoredSegment, read_rows
from indexes.store.records import Manifest, Segment
from indexes.stored_vectors import MakeScan, open_vectors
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.forward import ForwardSegment
from indexes.text.forward_index import ForwardIndex
from indexes.text.linear import FULL_TEXT, LinearText
from indexes.text.phrases import PhraseSearch
from indexes.text.postings import PostingsSegment
from indexes.text.search import TextSearch


class SharedParts(NamedTuple):
    """The parts that an open generation shares with another one, so that they are not read or checked again."""

    documents: Mapping[Segment, StoredSegment] = {}
    postings: Mapping[str, PostingsSegment] = {}  # by file name, which is a checksum
    forward: Mapping[str, ForwardSegment] = {}  # also by file name
    rows: tuple[DocumentStore, Rows] | None = None


NOTHING = SharedParts()


class Collection:
    """One committed generation, opened for search; later commits do not disturb it."""

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        on_failure: OnFailure = "degrade",
        scan: MakeScan | None = None,
        verify: bool = True,
        known: SharedParts = NOTHING,
    ) -> None:
        self.directory, self.manifest = directory, manifest
        earlier = known.rows[0] if known.rows else None
        self.documents = DocumentStore(directory, manifest.segments, known.documents, earlier)
        self.rows = read_rows(directory, manifest, self.documents, known.rows)
        self.text, vectors = self._open_on_server() if manifest.elastic else (self._open_text(known), None)
        checked = len(self.documents.since(earlier)[0]) if earlier else 0
        vectors = vectors or self._open_vectors(scan, verify, checked)
        self.stored_forward = self._open_forward(known)
        self._fields: set[str] = set()  # metadata fields that are known to occur in documents
        settings = search_settings(manifest, on_failure)
        self.hybrid = HybridIndex(self.rows, vectors, self.text, settings, at_once=bool(manifest.elastic))

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        on_failure: OnFailure = "degrade",
        scan: MakeScan | None = None,
        before: Collection | None = None,
        verify: bool = True,
    ) -> Self:
        """Return the last committed generation, after checking all its files except those of `before`.

        Files never change, so files of an earlier generation that this process has opened and checked are shared.
        `scan` creates the exact scan over many vectors (see FaissIndex). If `verify` is false, only sizes are compared,
        not checksums, and vectors are not checked. Raises IndexesError if there is no index, FormatVersionError if
        this version cannot read it, and DamagedError if a file is missing or altered.
        """
        while True:
            checked = None if before is None else before.manifest.files
            manifest = storage.load_checked(directory, checked, verify)
            known = NOTHING if before is None else before.shared(manifest)
            try:
                return cls(directory, manifest, on_failure, scan, verify, known)
            except (FileNotFoundError, DamagedError):
                # Between the check and the opening, a writer may have committed a newer generation and deleted files.
                if manifests.load(directory).generation == manifest.generation:
                    raise

    def shared(self, manifest: Manifest) -> SharedParts:
        """Return the open parts that are also in the generation of `manifest`, which is in the same directory."""
        files, other = self.manifest.files, manifest.files
        pairs = zip(self.manifest.segments, self.documents.segments, strict=True)
        changed = [name for name in files if files[name] != other.get(name)]
        replaced = {name.split("/")[1] for name in changed if name.startswith(f"{storage.SEGMENTS}/")}
        same = [(segment, stored) for segment, stored in pairs if segment.name not in replaced]
        text = self.text.segments if isinstance(self.text, Bm25Index | FieldsIndex) else ()
        forward = self.stored_forward.segments if self.stored_forward else ()
        return SharedParts(
            {segment: stored for segment, stored in same if is_whole(stored.mapped)},
            {s.path.name: s for s in text if s.path and is_whole(mapping_of(s.terms))},
            {s.path.name: s for s in forward if s.path and is_whole(mapping_of(s.hashes))},
            (self.documents, self.rows),
        )

    def with_merged(self, manifest: Manifest, merged: SharedParts) -> Self:
        """Return the generation of `manifest`: the same rows in other segments, some `merged`. Raises DamagedError."""
        known, new = self.shared(manifest), copy.copy(self)
        for name in ("_blocks", "forward", "linear", "phrases"):  # rebuilt on demand
            new.__dict__.pop(name, None)
        opened = {**known.documents, **merged.documents}
        new.manifest, new.documents = manifest, self.documents.in_other_segments(manifest.segments, opened)
        known = SharedParts({}, {**known.postings, **merged.postings}, {**known.forward, **merged.forward})
        new.text = self.text if manifest.elastic else new._open_text(known)
        new.stored_forward = new._open_forward(known)
        new.hybrid = self.hybrid.with_text(new.text)
        return new

    def _open_text(self, known: SharedParts) -> TextSearch:
        folder = storage.text_folder(self.directory, self.manifest)
        analysis, bm25 = self.manifest.analysis, self.manifest.bm25
        if folder is None:
            return FieldsIndex.empty(analysis, bm25) if bm25.fields else Bm25Index(analysis, parameters=bm25)
        kind: type[FieldsIndex | Bm25Index] = FieldsIndex if bm25.fields else Bm25Index
        return kind.open(folder, self.rows, analysis, bm25, known.postings)

    def _open_forward(self, known: SharedParts) -> ForwardIndex | None:
        # The files are mapped now, since the next commit may delete them.
        folder = storage.text_folder(self.directory, self.manifest)
        if not self.manifest.positions or folder is None:
            return None
        return ForwardIndex.open(folder, len(self.rows.ids), self.manifest.analysis, known.forward)

    def _open_on_server(self) -> tuple[TextSearch, RowSearch | None]:
        from indexes.cluster.beside import open_retrievers
        from indexes.cluster.sending import vector_kind

        try:
            return open_retrievers(self.manifest, self.rows)
        except BackendUnavailableError as error:
            unavailable = Unavailable(error)
            return unavailable, unavailable if vector_kind(self.manifest)[0] else None

    def _open_vectors(self, scan: MakeScan | None, verify: bool, checked: int) -> RowSearch | None:
        encoder = self.manifest.encoder
        if encoder is None:
            return None
        try:
            blocks = self.documents.vectors(encoder.dim)
            first = checked if verify else self.documents.rows
            return open_vectors(self.directory, self.manifest, self.rows, blocks, encoder.dim, scan, first)
        except MissingExtraError as error:
            return Unavailable(error)

    def vectors_of(self, ranking: HybridIndex, rows: RowArray) -> Float32Array:
        """Return the vectors of `rows` (int64 [...]) of `ranking`, float32 [..., dim]; arbitrary for row −1."""
        if blocks := self._blocks:
            return blocks[0][np.maximum(rows, 0)]
        return np.zeros((*rows.shape, self.manifest.encoder.dim if self.manifest.encoder else 0), np.float32)

    def forward_of(self, ranking: HybridIndex, rows: RowArray, texts: Sequence[str]) -> ForwardIndex:
        """Return the terms of all rows in order. Raises DamagedError."""
        return self.forward

    def values_of(self, ranking: HybridIndex, rows: RowArray, field: str) -> list[Any]:
        """Return the values of a metadata field of `rows` (int64 [n]); None for row −1."""
        if field not in self._values:
            self._values[field] = [values.get(field) for values in self.documents.metadata()]
        column = self._values[field]
        return [column[row] if row >= 0 else None for row in rows.tolist()]

    @functools.cached_property
    def _values(self) -> dict[str, list[Any]]:
        return {}

    @functools.cached_property
    def _blocks(self) -> Sequence[Matrix]:
        return self.documents.vectors(self.manifest.encoder.dim) if self.manifest.encoder else []

    @contextlib.contextmanager
    def stored(self, folder: str) -> Iterator[Path]:
        """Provide the path of a folder that is stored in the index, such as its ranker. Raises DamagedError."""
        yield self.directory / folder

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields by which documents can be filtered, sorted. Reads all metadata once."""
        return self.rows.fields

    @property
    def backend(self) -> str:
        """Where BM25 runs: "embedded", or the kind of server."""
        return "elastic" if self.manifest.elastic else "embedded"

    def ranking(self) -> HybridIndex:
        """Return both retrievers in a HybridIndex whose row numbers agree in all of its searches."""
        return self.hybrid

    @functools.cached_property
    def forward(self) -> ForwardIndex:
        """The terms of all rows in order, from the stored texts if the index lacks them. Raises DamagedError."""
        return self.stored_forward or ForwardIndex.of(self.documents.texts(), self.manifest.analysis)

    @functools.cached_property
    def linear(self) -> LinearText:
        """The rows as sparse vectors, for linear models over all of them, directly from the stored postings.

        If BM25 is on a server, they come from postings built in memory from the stored texts. Raises DamagedError.
        """
        analysis, bm25 = self.manifest.analysis, self.manifest.bm25
        if isinstance(self.text, FieldsIndex):
            return LinearText(self.text.scorers(), analysis, bm25)
        local = self.text if isinstance(self.text, Bm25Index) else None
        index = local or Bm25Index.rebuilt(self.documents.texts(), self.rows, analysis)
        return LinearText({FULL_TEXT: index.scorer()}, analysis, bm25)

    @functools.cached_property
    def phrases(self) -> Phrases:
        """The search for phrases. Raises BackendUnavailableError if BM25 is on a server that does not answer."""
        if not isinstance(self.text, Bm25Index | FieldsIndex):
            from indexes.cluster.beside import phrases

            return phrases(self.text, self.manifest.analysis, self.rows)
        return PhraseSearch(
            self.text, self.rows, self.stored_forward, lambda row: self.documents[row].full_text
        )

    def check_fields(self, where: Filter) -> None:
        """Raise BadFilterError, with the closest match, if no document, here or on a server, has a field."""
        for name in set(where.fields) - self._fields if self.rows.ids else ():
            if not self._on_server(name) and name not in self.rows.fields:
                raise unknown_field(name, self.rows.fields)
            self._fields.add(name)

    def misfits(self, where: Filter) -> tuple[str, ...]:
        """Return remarks about the ranges of a filter; see `Rows.misfits`. A server is not queried."""
        return () if self.manifest.elastic else self.rows.misfits(where)

    def _on_server(self, field: str) -> bool:
        """Return whether a server has documents with a metadata field, or cannot tell now."""
        if not self.manifest.elastic:
            return False
        from indexes.cluster.beside import has_field

        try:
            return has_field(self.text, field)
        except BackendUnavailableError:
            return True  # if the server is down, the search will report it

    def matching(self, where: Filter | None = None, after: str = "") -> Iterator[Document]:
        """Yield matching documents in row order, those that follow `after`. Raises DamagedError, UnknownIdError."""
        mask = self.rows.mask(where)
        first = int(self.rows.locate([after])[0]) + 1 if after else 0
        for row in range(first, len(self.rows.ids)):
            if mask is None or mask[row]:
                yield self.documents[row]

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of `ids` are in the index."""
        return self.rows.present(ids)

    def document(self, id_: str) -> Document:
        """Return a live document. Raises UnknownIdError if no document has this id, or DamagedError."""
        return self.documents[int(self.rows.locate([id_])[0])]


def contradictions(directory: Path) -> list[str]:
    """Return damage that checksums do not reveal, found by opening the index and reading every document."""
    try:
        collection = Collection.open(directory)
        collections.deque(collection.documents.texts(), maxlen=0)
    except DamagedError as e:
        return [str(e)]
    return []
