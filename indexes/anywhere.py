"""The interfaces of an index that is open for reading or writing: in a directory, in shards, or on a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from indexes.dtypes import Float32Array
from indexes.fusion import Fusion
from indexes.hybrid import HybridIndex, OnFailure, SearchSettings
from indexes.interface import Document, Filter, Matrix, Metadata, RowArray
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store.records import BuildRecord, Manifest
from indexes.text.forward_index import ForwardIndex
from indexes.text.linear import LinearText
from indexes.text.parameters import Bm25Parameters
from indexes.text.search import TextSearch


class AnyDocuments(Protocol):
    """The documents of an index by row."""

    @property
    def rows(self) -> int:
        """Number of documents, removed ones included."""

    def ids(self) -> Sequence[str]:
        """Return all ids, in the order of the rows."""

    def metadata(self) -> Iterator[Metadata]:
        """Yield every document's metadata, in the order of the rows."""

    def texts(self) -> Iterator[str]:
        """Yield every document's indexed text, in the order of the rows."""

    def vectors(self, dim: int) -> list[Matrix]:
        """Return the vectors of all documents as at most one block, float32 [rows, dim]."""

    def __getitem__(self, row: int) -> Document: ...


class Phrases(Protocol):
    """The search for quoted phrases."""

    def filter(self, text: str, where: Filter | None = None) -> Filter | None:
        """Return a filter for documents with every phrase quoted in `text`, or `where` if nothing is quoted."""


class AnyCollection(Protocol):
    """An index that is opened for reading."""

    @property
    def directory(self) -> Path:
        """The directory, or the address in place of one."""

    @property
    def manifest(self) -> Manifest:
        """The committed manifest."""

    @property
    def documents(self) -> AnyDocuments:
        """The documents by row."""

    @property
    def rows(self) -> Rows:
        """The row of each id; on a cluster, this reads the ids of all documents."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields by which documents can be filtered, sorted."""

    @property
    def text(self) -> TextSearch:
        """The retriever for texts."""

    @property
    def hybrid(self) -> HybridIndex:
        """Both retrievers."""

    def __len__(self) -> int: ...

    @property
    def backend(self) -> str:
        """Where BM25 runs: "embedded", or the kind of server."""

    @property
    def forward(self) -> ForwardIndex:
        """The terms of all rows in order. Raises DamagedError."""

    @property
    def linear(self) -> LinearText:
        """The rows as sparse vectors, for linear models over all of them. Raises DamagedError."""

    @property
    def phrases(self) -> Phrases:
        """The search for phrases. Raises BackendUnavailableError if BM25 is on a server that does not answer."""

    def ranking(self) -> HybridIndex:
        """Return both retrievers in a HybridIndex whose row numbers agree in all of its searches."""

    def vectors_of(self, ranking: HybridIndex, rows: RowArray) -> Float32Array:
        """Return the vectors of `rows` (int64 [...]) of `ranking`, float32 [..., dim]; arbitrary for row −1."""

    def forward_of(self, ranking: HybridIndex, rows: RowArray, texts: Sequence[str]) -> ForwardIndex:
        """Return a forward index of `rows` of `ranking` for `texts`. Raises DamagedError, BackendUnavailableError."""

    def values_of(self, ranking: HybridIndex, rows: RowArray, field: str) -> list[Any]:
        """Return a metadata field's values for the documents `rows` (int64 [n]) of `ranking`; None for row −1."""

    def stored(self, folder: str) -> AbstractContextManager[Path]:
        """Provide the path of a folder that is stored in the index, such as its ranker. Raises DamagedError."""

    def check_fields(self, where: Filter) -> None:
        """Raise BadFilterError, which names the closest match, if no document has a field of the filter."""

    def matching(self, where: Filter | None = None, after: str = "") -> Iterator[Document]:
        """Yield matching documents in order of arrival, those after `after`. Raises DamagedError, UnknownIdError."""

    def misfits(self, where: Filter) -> tuple[str, ...]:
        """Return remarks about ranges of a filter that cannot be compared with some values, which never match."""

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of `ids` are in the index."""

    def document(self, id_: str) -> Document:
        """Return a document. Raises UnknownIdError if no document has this id, or DamagedError."""


class AnyWriter(Protocol):
    """An index that is opened for changes."""

    takes_back: bool  # whether uncommitted changes can be rolled back
    directory: Path
    manifest: Manifest
    _quarantine: list[bytes]

    @property
    def pending(self) -> int:
        """Number of documents that the next commit will add."""

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of `ids` are in the index now, uncommitted changes included."""

    def add(self, documents: Sequence[Document], vectors: Matrix | None) -> None:
        """Add a batch, all or nothing, with `vectors` (float32 [n, dim]) if there is an encoder; see `Writer.add`."""

    def remove(self, ids: Sequence[str]) -> None:
        """Remove the documents with these ids, all or nothing. Raises UnknownIdError."""

    def commit(
        self,
        build: BuildRecord | None = None,
        search: Mapping[str, Any] | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> Manifest:
        """Make all changes since the last commit durable; return the new manifest. Raises IndexesError.

        `build`, `search` and `bm25` replace the manifest's records of the same names.
        """

    def compact(self) -> Manifest:
        """Reclaim the space of removed documents; return the manifest. Raises IndexesError."""

    def quarantine(self, line: bytes) -> None:
        """Store an unusable record, given as one line of JSON, with the next commit."""
        self._quarantine.append(line)

    @property
    def quarantined(self) -> int:
        """Number of unusable records that the next commit will store."""
        return len(self._quarantine)

    def store_ranker(self, name: str, folder: Path) -> Manifest:
        """Commit a copy of the ranker in `folder` under `ranker/name`; searches use it from now on.

        `name` has 16 hexadecimal digits, a hash of the ranker's content. Raises IndexesError.
        """
        return self._store(storage.RANKER, name, folder)

    def store_calibration(self, name: str, folder: Path) -> Manifest:
        """Commit a copy of the calibration in `folder` under `calibration/name`, like `store_ranker`."""
        return self._store(storage.CALIBRATION, name, folder)

    def store_lexicon(self, name: str, folder: Path) -> Manifest:
        """Commit a copy of the lexicons in `folder` under `lexicon/name`, like `store_ranker`."""
        return self._store(storage.LEXICON, name, folder)

    def _store(self, kind: str, name: str, folder: Path) -> Manifest: ...


def search_settings(manifest: Manifest, on_failure: OnFailure) -> SearchSettings:
    """Return the settings stored by `index tune`; by default hybrid search, or BM25 if there are no vectors."""
    search = manifest.search
    if "mode" not in search:
        return SearchSettings("hybrid" if manifest.embeds else "bm25", on_failure=on_failure)
    fusion = Fusion.from_json(search["fusion"]) if search["fusion"] else Fusion()
    return SearchSettings(search["mode"], fusion, on_failure=on_failure)
