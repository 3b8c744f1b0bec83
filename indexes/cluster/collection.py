"""An index that is only on a cluster, opened for reading: none of it is on this machine."""

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexes.address import Address
from indexes.anywhere import search_settings
from indexes.arrays import distinct
from indexes.cluster import files
from indexes.cluster.client import ElasticSettings
from indexes.cluster.documents import RemoteDocuments
from indexes.cluster.index import ClusterIndex, State
from indexes.cluster.mapping import document_of
from indexes.cluster.phrases import ClusterPhrases
from indexes.cluster.rescoring import CandidateTerms
from indexes.cluster.retrievers import retrievers
from indexes.cluster.rows import ByStamp
from indexes.cluster.searching import Guard, RemoteHybrid
from indexes.cluster.sending import vector_kind
from indexes.cluster.states import state_at, stored_manifest
from indexes.dtypes import Float32Array
from indexes.filters import unknown_field
from indexes.hybrid import HybridIndex, OnFailure
from indexes.interface import BackendUnavailableError, Document, Filter, RowArray, UnknownIdError
from indexes.rows import Rows, name_some
from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.forward_index import ForwardIndex
from indexes.text.linear import FULL_TEXT, LinearText


class RemoteCollection:
    """One generation on a cluster, opened for search; later additions and deletions are visible."""

    def __init__(self, address: Address, state: State, on_failure: OnFailure = "degrade") -> None:
        """Open a generation. Raises DamagedError or FormatVersionError if the stored manifest cannot be read."""
        self.directory, self.address, self.state = Path(str(address)), address, state
        settings = ElasticSettings.of(address, state.shards, state.replicas)
        self.index = index = ClusterIndex(settings, state.name)
        self.manifest = dataclasses.replace(
            stored_manifest(address, state), documents=index.count(), elastic=settings.to_json()
        )
        self.documents = RemoteDocuments(index, str(address))
        self._fields: set[str] = set()  # metadata fields that are known to occur in documents
        self._text, dense = retrievers(
            index, self.manifest, ByStamp(lambda ids, _: self.rows.find(ids), index.about)
        )
        self.text, vectors = Guard(self._text), None if dense is None else Guard(dense)
        self.hybrid = RemoteHybrid(index, vectors, self.text, search_settings(self.manifest, on_failure))

    def __len__(self) -> int:
        return self.index.count()

    @functools.cached_property
    def rows(self) -> Rows:
        """The rows of all documents in the order of their stamps, read into memory once. Raises the errors of `ids`."""
        rows = Rows()
        rows.restore(self.documents.ids(), np.empty(0, dtype=np.int64), self.documents.metadata())
        return rows

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields by which documents can be filtered, in sorted order."""
        return self.index.fields()

    def matching(self, where: Filter | None = None, after: str = "") -> Iterator[Document]:
        """Yield the documents that pass the filter, in the order of their stamps, as of one point in time.

        With `after`, the id of a document, yield only those that follow it. Raises UnknownIdError if it is unknown.
        """
        clauses, position = self._text.clauses(where), None
        if after:
            try:
                position = [self.index.versions([after])[after], after]
            except KeyError:
                raise UnknownIdError(f"not in the index: {name_some([after])}") from None
        sources = self.index.scan(clauses, source=True, after=position)
        return (document_of(source, self.index.name) for _, source in sources)

    def vectors_of(self, ranking: HybridIndex, rows: RowArray) -> Float32Array:
        """Return the vectors of `rows` (int64 [...]) of `ranking`, float32 [..., dim]; zeros for row −1."""
        dim, _ = vector_kind(self.manifest)
        there = distinct(rows[rows >= 0])
        read = self.index.vectors(self._ids(ranking, there), dim)
        out = np.zeros((*rows.shape, dim), dtype=np.float32)
        out[rows >= 0] = read[np.searchsorted(there, rows[rows >= 0])]
        return out

    def forward_of(self, ranking: HybridIndex, rows: RowArray, texts: Sequence[str]) -> ForwardIndex:
        """Return a forward index of the documents `rows` (int64 [...]) of `ranking`, for queries of `texts`."""
        there = distinct(rows[rows >= 0])
        documents, analysis = self._documents(ranking, there), self.manifest.analysis
        return CandidateTerms(analysis, there, documents, texts, self._text.statistics)

    def values_of(self, ranking: HybridIndex, rows: RowArray, field: str) -> list[Any]:
        """Return the values of a metadata field of documents `rows` (int64 [n]) of `ranking`; None for row −1."""
        there = distinct(rows[rows >= 0])
        documents = zip(there.tolist(), self._documents(ranking, there), strict=True)
        known = {row: document.metadata.get(field) for row, document in documents}
        return [known.get(row) for row in rows.tolist()]

    def _ids(self, ranking: HybridIndex, rows: RowArray) -> list[str]:
        ids = (self.rows if ranking is self.hybrid else ranking.rows).ids
        return [ids[row] for row in rows.tolist()]

    def _documents(self, ranking: HybridIndex, rows: RowArray) -> list[Document]:
        """Return the documents in `rows` (int64 [n]) of `ranking` as last written; those deleted since are empty."""
        ids = self._ids(ranking, rows)
        found = self.documents.read(ids)
        return [found.get(id_, Document(id_, "")) for id_ in ids]

    @contextlib.contextmanager
    def stored(self, folder: str) -> Iterator[Path]:
        """Provide a local copy of a folder stored in the index, deleted on exit. Raises DamagedError."""
        with tempfile.TemporaryDirectory(prefix="linker-") as name:
            files.get(self.index, self.manifest.files, folder, Path(name))
            yield Path(name)

    @property
    def backend(self) -> str:
        """The kind of server: "elastic" or "opensearch"."""
        return self.address.server

    @property
    def phrases(self) -> ClusterPhrases:
        """The search for phrases."""
        return ClusterPhrases(Analysis(self.manifest.analysis))

    @functools.cached_property
    def forward(self) -> ForwardIndex:
        """The terms of all documents, read into memory once."""
        return ForwardIndex.of(self.documents.texts(), self.manifest.analysis)

    @functools.cached_property
    def linear(self) -> LinearText:
        """The rows as sparse vectors, from postings that are built in memory from the stored texts."""
        analysis, bm25 = self.manifest.analysis, self.manifest.bm25
        if bm25.fields:
            by_field = FieldsIndex.empty(analysis, bm25)
            for documents in self.documents.blocks():
                by_field.add(documents)
            return LinearText(by_field.scorers(), analysis, bm25)
        index = Bm25Index.rebuilt(self.documents.texts(), self.rows, analysis)
        return LinearText({FULL_TEXT: index.scorer()}, analysis, bm25)

    def ranking(self) -> HybridIndex:
        """Return a HybridIndex that numbers only the documents that it finds or looks up."""
        return self.hybrid.meeting()

    def check_fields(self, where: Filter) -> None:
        """Raise BadFilterError, which names the closest match, if no document has a field of the filter."""
        try:
            for name in set(where.fields) - self._fields:
                if self.index.has_field(name):
                    self._fields.add(name)
                elif fields := self.index.fields():
                    raise unknown_field(name, fields)
        except BackendUnavailableError:
            return  # if the server is down, the search will report it

    def misfits(self, where: Filter) -> tuple[str, ...]:
        """Return no remarks about the ranges of a filter: they would require reading all documents."""
        return ()

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of `ids` are in the index, as last written."""
        return set(self.index.versions(ids))

    def document(self, id_: str) -> Document:
        """Return a document as last written. Raises UnknownIdError if no document has this id."""
        return self.read([id_])[0]

    def read(self, ids: Sequence[str]) -> list[Document]:
        """Return documents by id, in this order. Raises UnknownIdError naming the missing ids."""
        found = self.documents.read(ids)
        if missing := [id_ for id_ in ids if id_ not in found]:
            raise UnknownIdError(f"not in the index: {name_some(missing)}")
        return [found[id_] for id_ in ids]

    def is_last(self) -> bool:
        """Return whether the name refers to the same generation with the same settings. Raises IndexesError."""
        return state_at(self.address) == self.state

    def has_moved(self) -> bool:
        """Return whether a node knows of later settings or generations. Raises IndexesError, NoMasterError."""
        self.index.check_master()
        found = self.index.state(near=True)
        return found is not None and found != self.state


def open_remote(address: Address, on_failure: OnFailure = "degrade") -> RemoteCollection:
    """Return an index on a cluster, opened for search. Raises the same errors as `state_at` and RemoteCollection."""
    return RemoteCollection(address, state_at(address), on_failure)
