"""An index on a cluster, opened for reading: nothing of it is on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from indexes.address import Address
from indexes.collection import Collection
from indexes.dtypes import Float32Array
from indexes.elastic.client import WRITE_SECONDS
from indexes.elastic.stored import vector_kind
from indexes.filters import unknown_field
from indexes.hybrid import HybridIndex, OnFailure
from indexes.interface import (
    BackendUnavailableError,
    Document,
    Filter,
    IndexesError,
    Matrix,
    Metadata,
    RowArray,
    UnknownIdError,
)
from indexes.remote import files
from indexes.remote.abilities import abilities_of, refused
from indexes.remote.layout import document_of
from indexes.remote.reads import BATCH
from indexes.remote.retrievers import RemoteHybrid, RemoteText, RemoteVectors, guarded
from indexes.remote.rows import RemoteRows
from indexes.remote.store import RemoteStore, State, generation, settings_of
from indexes.rows import Rows, name_some
from indexes.store import manifest as manifests
from indexes.store.documents import DocumentStore
from indexes.store.records import Manifest
from indexes.text.forward_index import ForwardIndex
from indexes.text.phrases import PhraseSearch

BLOCK, BLOCKS = 64, 512  # documents that are read together by their rows, and how many such blocks are kept


class RemoteDocuments(DocumentStore):
    """Reads documents from the cluster, by id or by the row of `rows`."""

    def __init__(self, store: RemoteStore, rows: Callable[[], Rows]) -> None:
        self._store, self._all_rows = store, rows
        self._block = functools.lru_cache(BLOCKS)(self._read_block)

    def read(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return the documents of those `ids` that there are, as last written."""
        name = self._store.name
        return {id_: document_of(source, name) for id_, source in self._store.sources(ids).items()}

    @property
    def rows(self) -> int:
        """Number of documents when their ids were read."""
        return len(self._all_rows().ids)

    def ids(self) -> Sequence[str]:
        """Return all ids, in the order of the rows."""
        return self._all_rows().ids

    def metadata(self) -> Iterator[Metadata]:
        """Yield every document's metadata, in the order of the rows."""
        return (document.metadata for document in self._each())

    def texts(self) -> Iterator[str]:
        """Yield every document's indexed text, in the order of the rows."""
        return (document.full_text for document in self._each())

    def _each(self) -> Iterator[Document]:
        """Yield every document; one that was deleted after the ids were read is empty."""
        ids = self.ids()
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            found = self.read(part)
            yield from (found.get(id_, Document(id_, "")) for id_ in part)

    def vectors(self, dim: int) -> list[Matrix]:
        """Return the vectors of all documents as at most one block, float32 [rows, dim], read into memory."""
        ids = self.ids()
        return [self._store.vectors(ids, dim)] if ids else []

    def __getitem__(self, row: int) -> Document:
        block, place = divmod(row, BLOCK)
        return self._block(block)[place]

    def _read_block(self, number: int) -> list[Document]:
        part = self.ids()[number * BLOCK : (number + 1) * BLOCK]
        found = self.read(part)
        return [found.get(id_, Document(id_, "")) for id_ in part]


class RemoteCollection(Collection):
    """One generation on a cluster, opened for search; later additions and deletions are seen."""

    documents: RemoteDocuments
    rows: RemoteRows
    hybrid: RemoteHybrid

    def __init__(self, address: Address, state: State, on_failure: OnFailure = "degrade") -> None:
        """Raise DamagedError, FormatVersionError where the stored manifest cannot be read."""
        self.directory, self.address, self.state = Path(str(address)), address, state
        settings = settings_of(address, state.shards, state.replicas)
        self.store = store = RemoteStore(settings, state.name)
        self.manifest = dataclasses.replace(
            stored_manifest(address, state), documents=store.count(), elastic=settings.to_json()
        )
        self.rows = RemoteRows(
            store.count, lambda id_: bool(store.versions([id_])), store.fields, self._read_ids, str(address)
        )
        self.documents = RemoteDocuments(store, lambda: self.rows)
        self._stored_forward = None
        self._fields: set[str] = set()
        analysis, (dim, kind) = self.manifest.analysis, vector_kind(self.manifest)
        self._text = RemoteText(store, None, analysis, parameters=self.manifest.bm25)
        text = guarded(self._text, self.rows)
        vectors = guarded(RemoteVectors(store, dim, kind), self.rows) if dim else None
        self.text = text
        self.hybrid = RemoteHybrid(self.rows, vectors, text, self._settings(on_failure))

    def again(self) -> RemoteCollection:
        """Return the same generation, opened again: what it reads of all documents is read once more."""
        return RemoteCollection(self.address, self.state)

    def _read_ids(self) -> tuple[list[str], Callable[[], Iterator[Metadata]]]:
        return [id_ for id_, _ in self.store.scan()], self.documents.metadata

    def matching(self, where: Filter | None = None) -> Iterator[Document]:
        """Yield the documents that pass the filter, in the order of their stamps, as of one point in time."""
        clauses = self._text.clauses(where)
        return (document_of(source, self.store.name) for _, source in self.store.scan(clauses, source=True))

    def vectors_of(self, ranking: HybridIndex, rows: RowArray) -> Float32Array:
        """Return the vectors of documents `rows` (int64 [...]) of `ranking`, float32 [..., dim]; zeros where −1 is.

        They are read from the cluster, each once.
        """
        dim, _ = vector_kind(self.manifest)
        there = np.unique(rows[rows >= 0])
        read = self.store.vectors([ranking.rows.ids[row] for row in there.tolist()], dim)
        out = np.zeros((*rows.shape, dim), dtype=np.float32)
        out[rows >= 0] = read[np.searchsorted(there, rows[rows >= 0])]
        return out

    @contextlib.contextmanager
    def stored(self, folder: str) -> Iterator[Path]:
        """Give a local copy of a folder that is stored in the index, as long as it is open. Raises DamagedError."""
        with tempfile.TemporaryDirectory(prefix="linker-") as name:
            files.get(self.store, self.manifest.files, folder, Path(name))
            yield Path(name)

    @property
    def backend(self) -> str:
        """The kind of server."""
        return self.address.server

    def check_can(self, what: str) -> None:
        """Raise IndexesError where the cluster cannot do `what`."""
        if what in abilities_of(self.address).refusals:
            raise refused(self.address, what)

    @property
    def phrases(self) -> PhraseSearch:
        """Refused: the cluster stores no positions."""
        raise refused(self.address, "the search for phrases")

    @functools.cached_property
    def forward(self) -> ForwardIndex:
        """The terms of all documents, read into memory once."""
        return ForwardIndex.of(self.documents.texts(), self.manifest.analysis)

    def ranking(self) -> HybridIndex:
        """Return the retrievers, which number the documents that they meet, or are asked for: not all are read."""
        return self.hybrid.meeting()

    def check_fields(self, where: Filter) -> None:
        """Raise BadFilterError, which names the near miss, where no document has a field of the filter."""
        try:
            for name in set(where.fields) - self._fields:
                if self.store.has_field(name):
                    self._fields.add(name)
                elif fields := self.store.fields():
                    raise unknown_field(name, fields)
        except BackendUnavailableError:
            return  # the search will say so

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of `ids` are in the index, as last written."""
        return set(self.store.versions(ids))

    def document(self, id_: str) -> Document:
        """Return a document as last written. Raises UnknownIdError where there is none of this id."""
        return self.read([id_])[0]

    def read(self, ids: Sequence[str]) -> list[Document]:
        """Return documents by id, in this order. Raises UnknownIdError naming those that are gone."""
        found = self.documents.read(ids)
        if missing := [id_ for id_ in ids if id_ not in found]:
            raise UnknownIdError(f"not in the index (any more): {name_some(missing)}")
        return [found[id_] for id_ in ids]

    def is_last(self) -> bool:
        """Return whether the name leads to the same generation with the same settings. Raises IndexesError."""
        return state_at(self.address) == self.state

    def has_moved(self) -> bool:
        """Return whether the node that answers knows of another generation or settings. Raises IndexesError.

        Raises NoMasterError where that node has no master, so that its documents may be outdated.
        """
        self.store.check_led()
        found = self.store.state(near=True)
        return found is not None and found != self.state


def state_at(address: Address, *, to_write: bool = False) -> State:
    """Return what is at an address now. Raises IndexesError where there is no index, BackendUnavailableError.

    A writer waits for the election of a master, as its writes would, where there is another node to ask.
    """
    store = RemoteStore(settings_of(address))
    try:
        state = (
            store.led_state(WRITE_SECONDS if len(address.urls) > 1 else 0.0) if to_write else store.state()
        )
        if state is None and store.unfinished():
            raise IndexesError(
                f"the build of {address} was interrupted: finish it with `linker index build … --resume`, or delete "
                "it with `linker index drop`"
            )
    finally:
        store.close()
    if state is None:
        raise IndexesError(
            f"there is no index {address.name!r} at {', '.join(address.urls)}: build one with "
            f"`linker index build CORPUS --out {address}`"
        )
    return state


def stored_manifest(address: Address, state: State) -> Manifest:
    """Return the manifest as it was stored, with the number of its generation. Raises DamagedError."""
    manifest = manifests.read(state.stored.encode(), str(address))
    return dataclasses.replace(manifest, generation=max(manifest.generation, generation(state.name)))


def load(address: Address) -> Manifest:
    """Return the manifest of an index with its counts as they are now. Raises as `state_at`."""
    state = state_at(address)
    settings = settings_of(address, state.shards, state.replicas)
    store = RemoteStore(settings, state.name)
    try:
        documents, quarantined = store.count(), store.quarantined()
    finally:
        store.close()
    return dataclasses.replace(
        stored_manifest(address, state),
        elastic=settings.to_json(),
        documents=documents,
        quarantined=quarantined,
    )


def open_remote(address: Address, on_failure: OnFailure = "degrade") -> RemoteCollection:
    """Return an index on a cluster, opened for search. Raises as `state_at`, and as RemoteCollection."""
    return RemoteCollection(address, state_at(address), on_failure)
