"""The part of a stored collection on Elasticsearch: BM25, and the vectors if the manifest says so.

The directory remains authoritative: it holds the documents, their rows and the commits. A commit adds to the server
before the manifest is replaced and removes from it afterwards, so a crash in between leaves extra rows there, but
never too few; searches skip extra rows, and the next writer removes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from indexes.disk import faults
from indexes.disk.writing import FileRecord
from indexes.elastic.breaker import Breaker
from indexes.elastic.client import ElasticSettings, remember
from indexes.elastic.mapping import WITH_NOISE, meta_terms, stored_vectors
from indexes.elastic.retrievers import ElasticText, ElasticVectors
from indexes.elastic.server_index import ElasticStore
from indexes.interface import BackendUnavailableError, Document, IndexesError, Matrix, RowSearch
from indexes.kinds import KINDS, on_server
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store.documents import DocumentStore, read_rows
from indexes.store.records import Manifest

BATCH = 512
SAMPLE = 1000  # documents compared by a verification


def vector_kind(manifest: Manifest) -> tuple[int, str]:
    """Return the dimension and the kind of the vectors on the server; dimension 0 where it has none."""
    if manifest.encoder is None or not on_server(manifest.vectors):
        return 0, "flat"
    return manifest.encoder.dim, KINDS[manifest.vectors].server_type


def outdated(store: ElasticStore, manifest: Manifest) -> str:
    """Return a message if an earlier version made the index, without the vectors that graphs need now; else ''."""
    if vector_kind(manifest)[1] == "flat" or store.format() >= WITH_NOISE:
        return ""
    return f"{store.settings.index} was made by an earlier version: fill it again with `linker index rebuild`"


def open_retrievers(manifest: Manifest, rows: Rows) -> tuple[Breaker, RowSearch | None]:
    """Return the text retriever and, if the vectors are on the server, the dense one; nothing is sent yet."""
    store = ElasticStore(ElasticSettings.from_json(manifest.elastic))
    dim, kind = vector_kind(manifest)
    vectors = Breaker(ElasticVectors(store, dim, kind, rows)) if dim else None
    return Breaker(ElasticText(store, rows, manifest.analysis, parameters=manifest.bm25)), vectors


def has_field(text: object, field: str) -> bool:
    """Return whether a document on the server of a text retriever has short values in this metadata field.

    Raises BackendUnavailableError where the server does not answer or is known not to.
    """
    if not isinstance(text, Breaker) or not isinstance(text.side, ElasticText) or text.is_open:
        raise BackendUnavailableError("the server is not asked for its fields")
    return text.side.store.has_field(field)


class ServerText(ElasticText):
    """The text backend on the server, as the collection's writer uses it."""

    def __init__(self, manifest: Manifest, rows: Rows, settings: ElasticSettings | None = None) -> None:
        store = ElasticStore(settings or ElasticSettings.from_json(manifest.elastic))
        dim, kind = vector_kind(manifest)
        super().__init__(store, rows, manifest.analysis, kind if dim else None, manifest.bm25)
        self._manifest = manifest
        self._renumbered = settings is not None

    @classmethod
    def resume(cls, manifest: Manifest, rows: Rows) -> ServerText:
        """Resume from a commit, after removing the leftovers of an interrupted writer from the server.

        Raises BackendUnavailableError where the server does not answer or has lost documents, IndexesError where the
        index is outdated.
        """
        writer = cls(manifest, rows)
        try:
            writer._clean()
        except BaseException:
            writer.close()
            raise
        return writer

    def _clean(self) -> None:
        manifest, store = self._manifest, self.store
        if not manifest.rows and not store.exists():
            store.create(*vector_kind(manifest), manifest.bm25)
        store.drop(numberings=True)
        if message := outdated(store, manifest):
            raise IndexesError(message)
        count = store.clean(manifest.rows, self._rows.dead, manifest.documents)
        if count != manifest.documents:
            raise BackendUnavailableError(
                f"{store.settings.index} holds {count} of {manifest.documents} documents: "
                "restore them with `linker index rebuild`"
            )

    @property
    def elastic(self) -> Mapping[str, Any]:
        """The settings of the server's index, as JSON values for the manifest."""
        return self.store.settings.to_json()

    def add_documents(self, documents: Sequence[Document], vectors: Matrix | None = None) -> None:
        """Add a batch, all or nothing; `vectors` is float32 [n, dim]. Raises DuplicateIdError, BadIdError."""
        ids, texts = [d.id for d in documents], [d.full_text for d in documents]
        self.add(ids, texts, [d.metadata for d in documents], vectors)

    def write(self, name: str) -> dict[str, FileRecord]:
        """Wait until the server has every addition; return no files. Raises BackendUnavailableError."""
        self.commit()
        faults.point("text.committed")
        return {}

    def renumbered(self, rows: Rows) -> ServerText:
        """Close this index and return an empty one beside it, for renumbered rows."""
        self.close()
        old = self.store.settings
        stem, _, number = old.index.partition(".")
        settings = dataclasses.replace(old, index=f"{stem}.{int(number or 1) + 1}")
        writer = ServerText(self._manifest, rows, settings)
        writer.store.drop()  # the leftover of an interrupted renumbering
        writer.store.create(*vector_kind(self._manifest), self._manifest.bm25)
        return writer

    def settle(self) -> None:
        """After the commit, delete its removed rows and an old numbering; if the server fails, a later call does it."""
        faults.point("elastic.settle")
        with contextlib.suppress(BackendUnavailableError):
            super().settle()
            if self._renumbered:
                self.store.drop(numberings=True)
                self._renumbered = False


def rebuild(directory: Path, changes: dict[str, Any]) -> Manifest:
    """Fill a new index from the directory's documents, replace the old one in one step, and return the manifest.

    Searches continue meanwhile. `changes` are new values of ElasticSettings (urls, shards, replicas), which are
    stored in the manifest. Raises IndexesError where the collection has no part on a server,
    BackendUnavailableError where the server does not answer or documents are lost.
    """
    with storage.write_lock(directory):
        manifest = storage.load_checked(directory)
        if not manifest.elastic:
            raise IndexesError(f"{directory} has nothing on Elasticsearch: build it with --backend elastic")
        settings = dataclasses.replace(
            ElasticSettings.from_json(manifest.elastic), **changes, named="urls" in changes
        )
        documents = DocumentStore(directory, manifest.segments)
        rows = read_rows(directory, manifest, documents)
        store = ElasticStore(settings).next_generation(*vector_kind(manifest), manifest.bm25)
        try:
            _fill(store, manifest, documents, rows)
            store.flush()
            if (count := store.count()) != manifest.documents:
                raise BackendUnavailableError(f"{count} of {manifest.documents} documents arrived: try again")
            store.promote()
            remember(settings)
        finally:
            store.close()
        if changes:
            manifest = dataclasses.replace(
                manifest, generation=manifest.generation + 1, elastic=settings.to_json()
            )
            storage.replace_manifest(directory, manifest)
        return manifest


def _fill(store: ElasticStore, manifest: Manifest, documents: DocumentStore, rows: Rows) -> None:
    text = ElasticText(store, rows, manifest.analysis)
    dim, kind = vector_kind(manifest)
    blocks = documents.vectors(dim) if dim else []
    dead = set(rows.dead.tolist())
    vector = itertools.chain.from_iterable(blocks)
    for row in range(manifest.rows):
        fields = stored_vectors(next(vector)[None], kind, row) if dim else None
        if row not in dead:
            document = documents[row]
            store.put(row, [document.id], [text.terms(document.full_text)], fields, [document.metadata])


class Comparison(NamedTuple):
    """The differences between server and directory, one line each: `damage`, and harmless `notes`."""

    damage: list[str]
    notes: list[str]


def check(directory: Path, manifest: Manifest, sample: int = SAMPLE) -> Comparison:
    """Compare the server with the directory: all counts, and the content of `sample` documents spread over it.

    Rows that are not in the commit are no damage: a writer is at work or was interrupted, and searches skip them.
    Raises BackendUnavailableError where the server does not answer.
    """
    documents = DocumentStore(directory, manifest.segments)
    rows = read_rows(directory, manifest, documents)
    text = ElasticText(ElasticStore(ElasticSettings.from_json(manifest.elastic)), rows, manifest.analysis)
    try:
        removed = text.store.count_rows(rows.dead)
        damage = list(_differences(text, documents, rows, manifest, sample, removed))
        extra = removed + text.store.count({"range": {"row": {"gte": manifest.rows}}})
    finally:
        text.close()
    name = text.store.settings.index
    note = (
        f"{name}: {extra} rows that are not in the commit: searches skip them, the next change removes them"
    )
    return Comparison(damage, [note] if extra else [])


def _differences(
    text: ElasticText, documents: DocumentStore, rows: Rows, manifest: Manifest, sample: int, removed: int
) -> Iterator[str]:
    name = text.store.settings.index
    count = text.store.count({"range": {"row": {"lt": manifest.rows}}}) - removed
    if message := outdated(text.store, manifest):
        yield message
    if count != manifest.documents:
        yield f"{name}: {count} documents instead of {manifest.documents}"
    mask = rows.mask()
    live = np.arange(manifest.rows) if mask is None else np.flatnonzero(mask)
    sampled_rows = live[np.linspace(0, len(live) - 1, min(sample, len(live)), dtype=np.int64)].tolist()
    for start in range(0, len(sampled_rows), BATCH):
        part = sampled_rows[start : start + BATCH]
        stored = text.store.fetch(part)
        for row in part:
            document = documents[row]
            expected = {"row": row, "id": document.id, "terms": text.terms(document.full_text)}
            if document.metadata and (meta := meta_terms(document.metadata, text.store.ordered())):
                expected["meta"] = meta
            if row not in stored:
                yield f"{name}: document {document.id!r} is missing"
            elif stored[row] != expected:
                yield f"{name}: document {document.id!r} differs from the directory's"
