"""Sends documents to a generation on the cluster, under the stamps that its writer has given them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from indexes.elastic.mapping import stored_vectors
from indexes.elastic.stored import vector_kind
from indexes.interface import Document, Matrix
from indexes.remote import layout
from indexes.remote.store import RemoteStore
from indexes.store.records import Manifest
from indexes.text.analysis import Analysis
from indexes.writer import own_vectors


class Sender(Protocol):
    """Where a writer puts documents that may be written."""

    def put(self, documents: Sequence[Document], vectors: Matrix | None, first: int) -> None:
        """Send documents, or none of them; document n has the stamp `first` + n, its version on the server.

        Raises BadVectorError, and the error of an earlier call.
        """

    def flush(self) -> None:
        """Wait until the servers have acknowledged all documents. Raises as `Bulk.flush`."""


class DirectSender:
    """Analyses documents in this process and sends them from it; `vectors` are float32 [n, dim]."""

    def __init__(self, store: RemoteStore, manifest: Manifest) -> None:
        self._store, self._manifest = store, manifest
        self._analysis = Analysis(manifest.analysis)

    def put(self, documents: Sequence[Document], vectors: Matrix | None, first: int) -> None:
        """Queue documents. Raises as `Sender.put`."""
        _, kind = vector_kind(self._manifest)
        own = own_vectors(self._manifest, vectors, [d.id for d in documents])
        blocks = {} if own is None else stored_vectors(own, kind, first)
        terms = [" ".join(self._analysis.terms(self._analysis.prepare(d.full_text))) for d in documents]
        for n, document in enumerate(documents):
            vector = {name: block[n] for name, block in blocks.items()}
            source = layout.source_of(document, first + n, terms[n], vector)
            self._store.put_document(document.id, first + n, source)

    def flush(self) -> None:
        """Wait for the servers. Raises as `Sender.flush`."""
        self._store.bulk.flush()
