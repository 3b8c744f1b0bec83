"""Sends documents to an index on a cluster, under the rows or stamps assigned by its writer."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from indexes.cluster.bulk import Operation
from indexes.cluster.index import ClusterIndex
from indexes.cluster.mapping import field_terms, index_document, index_row, stored_vectors
from indexes.interface import Document, Matrix
from indexes.kinds import KINDS, on_server
from indexes.store.records import Manifest
from indexes.store.segments import own_vectors
from indexes.text.analysis import Analysis


class Sender(Protocol):
    """The destination of a writer's documents."""

    def put(self, documents: Sequence[Document], vectors: Matrix | None, first: int) -> None:
        """Send documents; document n has the row, or the stamp, `first` + n. Raises the error of an earlier call."""

    def flush(self) -> None:
        """Wait until the servers have acknowledged all documents. Raises the same errors as `Bulk.flush`."""


class DirectSender:
    """Analyses documents and sends them from this process, with `vectors` (float32 [n, dim]) if the index stores any.

    For an index next to a directory, the vectors must already have length 1.
    """

    def __init__(self, index: ClusterIndex, manifest: Manifest) -> None:
        self._index, self._manifest, self._kind = index, manifest, vector_kind(manifest)
        self._analysis = Analysis(manifest.analysis)
        self._fields = [field.name for field in manifest.bm25.fields]

    def put(self, documents: Sequence[Document], vectors: Matrix | None, first: int) -> None:
        """Queue documents, all or nothing. Raises the same errors as `Sender.put`, and BadVectorError."""
        self.queue(self.operations(documents, vectors, first))

    def queue(self, operations: Iterable[Operation]) -> None:
        """Queue operations. Raises the error of an earlier request."""
        for operation in operations:
            self._index.bulk.put(operation)

    def operations(
        self, documents: Sequence[Document], vectors: Matrix | None, first: int
    ) -> list[Operation]:
        """Return the operations that write documents, like `put`."""
        stateless, (dim, kind) = self._index.settings.stateless, self._kind
        if stateless:  # next to a directory, the directory's writer has already normalised them
            vectors = own_vectors(self._manifest, vectors, [d.id for d in documents])
        blocks: dict[str, Any] = (
            {} if vectors is None or not dim else stored_vectors(np.asarray(vectors), kind, first)
        )
        operations = []
        for n, document in enumerate(documents):
            terms, fields = self.terms(document), {name: block[n] for name, block in blocks.items()}
            fields |= field_terms([self._terms(document.field(name)) for name in self._fields])
            if stateless:
                operations.append(index_document(document, first + n, terms, fields))
            else:
                operations.append(index_row(document, first + n, terms, fields))
        return operations

    def terms(self, document: Document) -> list[str]:
        """Return the terms of a document, as the server stores them."""
        return self._terms(document.full_text)

    def _terms(self, text: str) -> list[str]:
        return self._analysis.terms(self._analysis.prepare(text))

    def flush(self) -> None:
        """Wait for the servers. Raises the same errors as `Sender.flush`."""
        self._index.bulk.flush()


def vector_kind(manifest: Manifest) -> tuple[int, str]:
    """Return the dimension and the kind of the vectors on the server; dimension 0 if it has none."""
    if manifest.encoder is None or not on_server(manifest.vectors):
        return 0, "flat"
    return manifest.encoder.dim, KINDS[manifest.vectors].server_type
