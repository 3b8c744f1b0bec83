"""The part of a stored collection that is on a cluster: BM25, and also the vectors if the manifest says so.

The directory remains authoritative: it holds the documents, their rows and the commits. A commit adds to the server
before the manifest is replaced and removes from it afterwards, so a crash in between may leave extra rows there, but
never missing rows; searches skip extra rows, and the next writer removes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from indexes.arrays import check_k
from indexes.cluster.breaker import Breaker
from indexes.cluster.client import ElasticSettings, remember
from indexes.cluster.index import ClusterIndex
from indexes.cluster.mapping import delete_row
from indexes.cluster.phrases import ClusterPhrases
from indexes.cluster.retrievers import ClusterText, retrievers
from indexes.cluster.rows import ByRow
from indexes.cluster.sending import DirectSender, vector_kind
from indexes.disk import faults
from indexes.disk.writing import FileRecord
from indexes.hybrid import Unavailable
from indexes.interface import (
    BackendUnavailableError,
    Document,
    Filter,
    Hits,
    IndexesError,
    Matrix,
    Metadata,
    RowArray,
    RowSearch,
    ScoreArray,
)
from indexes.rows import Rows, check_lengths
from indexes.store import files as storage
from indexes.store.documents import DocumentStore, read_rows
from indexes.store.records import Manifest
from indexes.text.analysis import Analysis
from indexes.text.parameters import AnalysisSettings, Bm25Parameters


def open_retrievers(manifest: Manifest, rows: Rows) -> tuple[Breaker, RowSearch | None]:
    """Return the text retriever and, if the vectors are on the server, the dense one; nothing is sent yet."""
    index = ClusterIndex(ElasticSettings.from_json(manifest.elastic))
    text, vectors = retrievers(index, manifest, ByRow(rows))
    return Breaker(text), None if vectors is None else Breaker(vectors)


def has_field(text: object, field: str) -> bool:
    """Return whether any document on the server has this metadata field. Raises BackendUnavailableError."""
    if not isinstance(text, Breaker) or not isinstance(text.retriever, ClusterText) or text.is_open:
        raise BackendUnavailableError("the server is not available, so its fields are unknown")
    return text.retriever.index.has_field(field)


def phrases(text: object, analysis: AnalysisSettings, rows: Rows) -> ClusterPhrases:
    """Return the phrase search of a text retriever over `rows`. Raises BackendUnavailableError."""
    if isinstance(text, Unavailable):
        raise text.error
    assert isinstance(text, Breaker)
    assert isinstance(text.retriever, ClusterText)
    retriever, run = text.retriever, text.run
    return ClusterPhrases(
        Analysis(analysis), lambda where: run(lambda: retriever.matching(where)), len(rows.ids)
    )


class ServerText:
    """The TextIndex by which a collection's writer updates the server. Raises IndexesError for an unknown language."""

    def __init__(self, manifest: Manifest, rows: Rows, index: ClusterIndex, renumbered: bool = False) -> None:
        """`renumbered`: whether `index` replaces an index with a different row numbering."""
        self.index, self._manifest, self._rows = index, manifest, rows
        self._sender = DirectSender(self.index, manifest)
        self._retriever, _ = retrievers(self.index, manifest, ByRow(rows))
        self._removed: list[RowArray] = []
        self._dirty, self._renumbered = False, renumbered

    @classmethod
    def resume(cls, manifest: Manifest, rows: Rows) -> ServerText:
        """Open the index as of the last commit, deleting an interrupted writer's leftovers. Raises IndexesError."""
        writer = cls(manifest, rows, ClusterIndex(ElasticSettings.from_json(manifest.elastic)))
        try:
            writer._clean()
        except BaseException:
            writer.close()
            raise
        return writer

    def _clean(self) -> None:
        manifest, index = self._manifest, self.index
        if not manifest.rows and not index.exists():
            index.create(*vector_kind(manifest), manifest.bm25)
        index.drop(numberings=True)
        if message := index.outdated():
            raise IndexesError(message)
        count = index.clean(manifest.rows, self._rows.dead, manifest.documents)
        if count != manifest.documents:
            raise BackendUnavailableError(
                f"{index.settings.index} has {count} of {manifest.documents} documents: "
                "restore them with `linker index rebuild`"
            )

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def elastic(self) -> Mapping[str, Any]:
        """The settings of the server's index, as JSON values for the manifest."""
        return self.index.settings.to_json()

    def add_documents(self, documents: Sequence[Document], vectors: Matrix | None = None) -> None:
        """Add a batch, all or nothing; `vectors` is float32 [n, dim]. Raises DuplicateIdError, BadIdError."""
        operations = self._sender.operations(documents, vectors, len(self._rows.ids))
        self._rows.append([d.id for d in documents])
        self._dirty = self._dirty or bool(documents)
        self._sender.queue(operations)

    def add(
        self, ids: Sequence[str], texts: Sequence[str], metadata: Sequence[Metadata] | None = None
    ) -> None:
        """Add a batch, all or nothing. Raises the errors of `add_documents`, and IndexesError if the lengths differ."""
        check_lengths(ids, texts, metadata)
        values = [{}] * len(ids) if metadata is None else metadata
        self.add_documents([Document(i, t, "", m) for i, t, m in zip(ids, texts, values, strict=True)])

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing; `settle` removes it from the server. Raises UnknownIdError."""
        self._removed.append(self._rows.remove(ids))

    def search(
        self, texts: Sequence[str], k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> list[Hits]:
        """Return the top k documents per query, or fewer; ties are in row order. Raises the errors of `search_rows`."""
        check_k(k)
        return self._rows.hits(*self.search_rows(texts, min(k, len(self) or 1), where, bm25))

    def search_rows(
        self, queries: Sequence[str], k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, including uncommitted changes. Raises the errors of `ClusterText.search_rows`."""
        self.commit()
        self._delete()
        return self._retriever.search_rows(queries, k, where, bm25)

    def commit(self) -> None:
        """Wait until every addition is acknowledged and visible. Raises BackendUnavailableError or IndexesError."""
        if self._dirty:
            self.index.flush()
            self._dirty = False

    def write(self, name: str) -> dict[str, FileRecord]:
        """Wait until the server has every addition; there are no files to return. Raises BackendUnavailableError."""
        self.commit()
        faults.point("text.committed")
        return {}

    def renumbered(self, rows: Rows) -> ServerText:
        """Close this index, and return a new, empty one for renumbered rows."""
        self.close()
        old = self.index.settings
        stem, _, number = old.index.partition(".")
        settings = dataclasses.replace(old, index=f"{stem}.{int(number or 1) + 1}")
        writer = ServerText(self._manifest, rows, ClusterIndex(settings), renumbered=True)
        writer.index.drop()  # left over from an interrupted renumbering
        writer.index.create(*vector_kind(self._manifest), self._manifest.bm25)
        return writer

    def _delete(self) -> None:
        """Delete the removed rows on the server; until then, searches skip them. Raises BackendUnavailableError."""
        for row in (row for rows in self._removed for row in rows.tolist()):
            self.index.bulk.put(delete_row(row))
        if self._removed:
            self.index.flush()
            self._removed.clear()

    def settle(self) -> None:
        """Delete removed rows and an old numbering after a commit; if the server fails, a later call does so."""
        faults.point("elastic.settle")
        with contextlib.suppress(BackendUnavailableError):
            self._delete()
            if self._renumbered:
                self.index.drop(numberings=True)
                self._renumbered = False

    def close(self) -> None:
        """Stop the threads and close the connections."""
        self.index.close()


def rebuild(directory: Path, changes: dict[str, Any]) -> Manifest:
    """Fill a new index from the directory's documents, replace the old one in one step, and return the manifest.

    Searches continue meanwhile. `changes` are new values for ElasticSettings (urls, shards, replicas), which are
    stored in the manifest. Raises IndexesError if no part of the collection is on a server,
    BackendUnavailableError if the server does not answer or documents are lost.
    """
    with storage.write_lock(directory):
        manifest = storage.load_checked(directory)
        if not manifest.elastic:
            raise IndexesError(f"no part of {directory} is on Elasticsearch: build it with `backend` elastic")
        settings = dataclasses.replace(
            ElasticSettings.from_json(manifest.elastic), **changes, named="urls" in changes
        )
        documents = DocumentStore(directory, manifest.segments)
        rows = read_rows(directory, manifest, documents)
        index = ClusterIndex(settings).next_generation(*vector_kind(manifest), manifest.bm25)
        try:
            _fill(index, manifest, documents, rows)
            index.flush()
            if (count := index.count()) != manifest.documents:
                raise BackendUnavailableError(
                    f"only {count} of {manifest.documents} documents arrived: try again"
                )
            index.promote()
            remember(settings)
        finally:
            index.close()
        if changes:
            manifest = dataclasses.replace(
                manifest, generation=manifest.generation + 1, elastic=settings.to_json()
            )
            storage.replace_manifest(directory, manifest, manifest.files)
        return manifest


def _fill(index: ClusterIndex, manifest: Manifest, documents: DocumentStore, rows: Rows) -> None:
    sender, (dim, _) = DirectSender(index, manifest), vector_kind(manifest)
    dead, vectors = (
        set(rows.dead.tolist()),
        itertools.chain.from_iterable(documents.vectors(dim) if dim else []),
    )
    for row in range(manifest.rows):
        vector = next(vectors)[None] if dim else None
        if row not in dead:
            sender.put([documents[row]], vector, row)
