"""What a stored collection has on Elasticsearch: the BM25 side, and the vectors if its manifest says so.

The directory stays the truth: it holds the documents, their rows and the commits. A commit adds to the server
before the manifest is replaced and removes from it afterwards, so a crash in between leaves rows too many there,
never too few; searches leave these out and the next writer removes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from indexes.disk import faults
from indexes.disk.writing import FileRecord
from indexes.elastic.breaker import Breaker
from indexes.elastic.client import ElasticSettings, remember
from indexes.elastic.mapping import FORMAT, meta_terms, stored_vectors
from indexes.elastic.retrievers import ElasticText, ElasticVectors
from indexes.elastic.server_index import ElasticStore
from indexes.interface import BackendUnavailableError, IndexesError, RowSearch
from indexes.kinds import KINDS, on_server
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store.documents import DocumentStore, read_rows
from indexes.store.records import Manifest

BATCH = 512
SAMPLE = 1000  # documents that a verification compares


def vector_kind(manifest: Manifest) -> tuple[int, str]:
    """Return dimension and kind of the vectors on the server; dimension 0 where it has none."""
    if manifest.encoder is None or not on_server(manifest.vectors):
        return 0, "flat"
    return manifest.encoder.dim, KINDS[manifest.vectors].server_type


def outdated(store: ElasticStore, manifest: Manifest) -> str:
    """Say that an earlier version made the index, if it lacks what this one needs: a graph's own vectors."""
    if vector_kind(manifest)[1] == "flat" or store.format() >= FORMAT:
        return ""
    return f"{store.settings.index} was made by an earlier version: fill it anew with `linker index rebuild`"


def open_retrievers(manifest: Manifest, rows: Rows) -> tuple[RowSearch, RowSearch | None]:
    """Return the text side and, if the vectors are there too, the dense side; nothing is sent yet."""
    store = ElasticStore(ElasticSettings.from_json(manifest.elastic))
    dim, kind = vector_kind(manifest)
    vectors = Breaker(ElasticVectors(store, dim, kind, rows)) if dim else None
    return Breaker(ElasticText(store, rows, manifest.language)), vectors


class ServerText(ElasticText):
    """The side as a writer of the collection uses it."""

    def __init__(self, manifest: Manifest, rows: Rows, settings: ElasticSettings | None = None) -> None:
        store = ElasticStore(settings or ElasticSettings.from_json(manifest.elastic))
        dim, kind = vector_kind(manifest)
        super().__init__(store, rows, manifest.language, kind if dim else None)
        self._manifest = manifest
        self._renumbered = settings is not None

    @classmethod
    def resume(cls, manifest: Manifest, rows: Rows) -> ServerText:
        """Go on from a commit, after removing what an interrupted writer left on the server.

        Raises BackendUnavailableError when the server does not answer or has lost documents.
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
            store.create(*vector_kind(manifest))
        store.drop(numberings=True)
        if wrong := outdated(store, manifest):
            raise IndexesError(wrong)
        found = store.clean(manifest.rows, self._rows.dead, manifest.documents)
        if found != manifest.documents:
            raise BackendUnavailableError(
                f"{store.settings.index} holds {found} of {manifest.documents} documents: "
                "restore them with `linker index rebuild`"
            )

    @property
    def elastic(self) -> Mapping[str, Any]:
        """Where the side is."""
        return self.store.settings.to_json()

    def write(self, name: str) -> dict[str, FileRecord]:
        """Wait until the server has all that was added; there are no files."""
        self.commit()
        faults.point("text.committed")
        return {}

    def renumbered(self, rows: Rows) -> ServerText:
        """Start an empty index beside this one, for rows that are numbered anew."""
        self.close()
        old = self.store.settings
        stem, _, number = old.index.partition(".")
        settings = dataclasses.replace(old, index=f"{stem}.{int(number or 1) + 1}")
        writer = ServerText(self._manifest, rows, settings)
        writer.store.drop()  # what an interrupted renumbering left
        writer.store.create(*vector_kind(self._manifest))
        return writer

    def settle(self) -> None:
        """Follow the commit: remove what it removed, drop the numbering that it left. Later, if that fails now."""
        faults.point("elastic.settle")
        with contextlib.suppress(BackendUnavailableError):
            super().settle()
            if self._renumbered:
                self.store.drop(numberings=True)
                self._renumbered = False


def rebuild(directory: Path, changes: dict[str, Any]) -> Manifest:
    """Fill a new index from the directory's documents, then let it take the old one's place in one step.

    Searches go on meanwhile. `changes` are new values of ElasticSettings (urls, shards, replicas), which the
    manifest takes over. Raises IndexesError, BackendUnavailableError.
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
        coming = ElasticStore(settings).next_generation(*vector_kind(manifest))
        try:
            _fill(coming, manifest, documents, rows)
            coming.flush()
            if (found := coming.count()) != manifest.documents:
                raise BackendUnavailableError(f"{found} of {manifest.documents} documents arrived: try again")
            coming.promote()
            remember(settings)
        finally:
            coming.close()
        if changes:
            manifest = dataclasses.replace(
                manifest, generation=manifest.generation + 1, elastic=settings.to_json()
            )
            storage.replace_manifest(directory, manifest)
        return manifest


def _fill(store: ElasticStore, manifest: Manifest, documents: DocumentStore, rows: Rows) -> None:
    text = ElasticText(store, rows, manifest.language)
    dim, kind = vector_kind(manifest)
    blocks = documents.vectors(dim) if dim else []
    dead = set(rows.dead.tolist())
    vector = itertools.chain.from_iterable(blocks)
    for row in range(manifest.rows):
        own = stored_vectors(next(vector)[None], kind, row) if dim else None
        if row not in dead:
            document = documents[row]
            store.put(row, [document.id], [text.terms(document.full_text)], own, [document.metadata])


class Comparison(NamedTuple):
    """One line for each difference between server and directory, and for what does no harm."""

    damage: list[str]
    notes: list[str]


def check(directory: Path, manifest: Manifest, sample: int = SAMPLE) -> Comparison:
    """Compare the server with the directory: all counts, and the content of `sample` documents spread over it.

    Rows beside the commit are no damage: a writer is at work or was interrupted, and searches leave them out.
    Raises BackendUnavailableError.
    """
    documents = DocumentStore(directory, manifest.segments)
    rows = read_rows(directory, manifest, documents)
    text = ElasticText(ElasticStore(ElasticSettings.from_json(manifest.elastic)), rows, manifest.language)
    try:
        removed = text.store.count_rows(rows.dead)
        damage = list(_differences(text, documents, rows, manifest, sample, removed))
        beside = removed + text.store.count({"range": {"row": {"gte": manifest.rows}}})
    finally:
        text.close()
    name = text.store.settings.index
    note = f"{name}: {beside} rows that are not in the commit: searches leave them out, the next change removes them"
    return Comparison(damage, [note] if beside else [])


def _differences(
    text: ElasticText, documents: DocumentStore, rows: Rows, manifest: Manifest, sample: int, removed: int
) -> Iterator[str]:
    name = text.store.settings.index
    found = text.store.count({"range": {"row": {"lt": manifest.rows}}}) - removed
    if wrong := outdated(text.store, manifest):
        yield wrong
    if found != manifest.documents:
        yield f"{name}: {found} documents instead of {manifest.documents}"
    mask = rows.mask()
    live = np.arange(manifest.rows) if mask is None else np.flatnonzero(mask)
    chosen = live[np.linspace(0, len(live) - 1, min(sample, len(live)), dtype=np.int64)].tolist()
    for start in range(0, len(chosen), BATCH):
        part = chosen[start : start + BATCH]
        stored = text.store.fetch(part)
        for row in part:
            document = documents[row]
            expected = {"row": row, "id": document.id, "terms": text.terms(document.full_text)}
            if document.metadata and (meta := meta_terms(document.metadata)):
                expected["meta"] = meta
            if row not in stored:
                yield f"{name}: document {document.id!r} is missing"
            elif stored[row] != expected:
                yield f"{name}: document {document.id!r} differs from the directory's"
