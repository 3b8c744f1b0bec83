"""A stored collection: documents, vectors and BM25 of one committed generation, opened for reading."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from indexes.disk.reading import REMEDY, give_back, mapping_of
from indexes.fusion import Fusion
from indexes.hybrid import HybridIndex, OnFailure, SearchSettings, Unavailable
from indexes.interface import (
    BackendUnavailableError,
    DamagedError,
    Document,
    Matrix,
    MissingExtraError,
    RowSearch,
)
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store.documents import DocumentStore, read_rows
from indexes.store.records import Manifest
from indexes.text.bm25 import Bm25Index
from indexes.vectors.certified import ExactScan
from indexes.vectors.faiss_index import FaissIndex

CHECKED = 1 << 22  # floats looked at together: 16 MiB
MakeScan = Callable[[], ExactScan | None]


def check_unit(directory: Path, blocks: Sequence[Matrix]) -> None:
    """Raise DamagedError unless every vector of the blocks [n, dim] is of length 1, or 0: finite, above all.

    Pages of a mapped file are given back as it is read.
    """
    for block in blocks:
        mapped, step = mapping_of(block), max(1, CHECKED // block.shape[1])
        for start in range(0, len(block), step):
            part = block[start : start + step]
            squares = np.einsum("ij,ij->i", part, part)
            wrong = ~((np.abs(squares - 1) < 1e-2) | (squares == 0))  # also where it is NaN
            if wrong.any():
                row = start + int(np.argmax(wrong))
                raise DamagedError(f"{directory}: the vector of row {row} is not of length 1: {REMEDY}")
            if mapped is not None:
                give_back(mapped)


def text_folder(directory: Path, manifest: Manifest) -> Path | None:
    """Return the folder of the generation's BM25 side; None before the first document."""
    name = manifest.only_file(storage.TEXT)
    return (directory / name).parent if name else None


def open_vectors(
    directory: Path,
    manifest: Manifest,
    rows: Rows,
    blocks: Sequence[Matrix],
    dim: int,
    scan: MakeScan | None = None,
) -> FaissIndex:
    """Return the vector side over normalised vectors in blocks [n, dim], with its stored graph if there is one."""
    check_unit(directory, blocks)
    index = FaissIndex(dim, manifest.vectors, settings=manifest.search.get("vectors"), scan=scan)
    index.restore(rows, *blocks)
    if graph := manifest.only_file(storage.GRAPH):
        index.load_graph(directory / graph)
    return index


class Collection:
    """One committed generation; later commits do not disturb it."""

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        on_failure: OnFailure = "degrade",
        scan: MakeScan | None = None,
    ) -> None:
        self.directory, self.manifest = directory, manifest
        self.documents = DocumentStore(directory, manifest.segments)
        self.rows = read_rows(directory, manifest, self.documents)
        self.text, vectors = self._open_on_server() if manifest.elastic else (self._open_text(), None)
        vectors = vectors or self._open_vectors(scan)
        self.hybrid = HybridIndex(self.rows, vectors, self.text, self._settings(on_failure))

    @classmethod
    def open(
        cls, directory: Path, *, on_failure: OnFailure = "degrade", scan: MakeScan | None = None
    ) -> Self:
        """Check every file and open the last committed generation. Raises IndexesError, DamagedError.

        `scan` makes what searches many vectors exactly (see FaissIndex).
        """
        while True:
            manifest = storage.load_checked(directory)
            try:
                return cls(directory, manifest, on_failure, scan)
            except (FileNotFoundError, DamagedError):
                # A writer may have committed and swept between the check and the opening: then there is a newer one.
                if manifests.load(directory).generation == manifest.generation:
                    raise

    def _open_text(self) -> RowSearch:
        folder, language = text_folder(self.directory, self.manifest), self.manifest.language
        if self.manifest.format == 1:
            return Bm25Index.rebuilt(self.documents.texts(), self.rows, language)
        return Bm25Index.open(folder, self.rows, language) if folder else Bm25Index(language)

    def _open_on_server(self) -> tuple[RowSearch, RowSearch | None]:
        from indexes.elastic.stored import open_retrievers, vector_kind

        try:
            return open_retrievers(self.manifest, self.rows)
        except BackendUnavailableError as error:
            side = Unavailable(error)
            return side, side if vector_kind(self.manifest)[0] else None

    def _open_vectors(self, scan: MakeScan | None) -> RowSearch | None:
        encoder = self.manifest.encoder
        if encoder is None:
            return None
        try:
            blocks = self.documents.vectors(encoder.dim)
            return open_vectors(self.directory, self.manifest, self.rows, blocks, encoder.dim, scan)
        except MissingExtraError as error:
            return Unavailable(error)

    def _settings(self, on_failure: OnFailure) -> SearchSettings:
        """Return what `index tune` stored, or hybrid search where there are two sides to fuse."""
        search = self.manifest.search
        if "mode" not in search:
            return SearchSettings("hybrid" if self.manifest.encoder else "bm25", on_failure=on_failure)
        fusion = Fusion.from_json(search["fusion"]) if search["fusion"] else Fusion()
        return SearchSettings(search["mode"], fusion, on_failure=on_failure)

    def document(self, id_: str) -> Document:
        """Return a live document. Raises UnknownIdError."""
        return self.documents[int(self.rows.locate([id_])[0])]


def contradictions(directory: Path) -> list[str]:
    """Open an index whose checksums are right and read all its documents; return what is damaged all the same."""
    try:
        collection = Collection.open(directory)
        collections.deque(collection.documents.texts(), maxlen=0)
    except DamagedError as e:
        return [str(e)]
    return []
