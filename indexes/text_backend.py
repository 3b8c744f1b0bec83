"""A collection's text backend as its writer uses it: postings in the directory, or an index on Elasticsearch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from indexes.collection import text_folder
from indexes.disk import faults, writing
from indexes.disk.writing import FileRecord
from indexes.interface import Matrix, Metadata
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store import ownership
from indexes.store.documents import DocumentStore
from indexes.store.records import WITH_POSTINGS, Manifest
from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import AnalysisSettings
from indexes.text.postings import NAME


class TextBackend(Protocol):
    """What the writer needs of a text backend."""

    @property
    def elastic(self) -> Mapping[str, Any]:
        """Settings of the server, as the manifest stores them; empty if there is none."""
        ...

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        metadata: Sequence[Metadata] | None = None,
        vectors: Matrix | None = None,
    ) -> None:
        """Add a batch, all or nothing; `vectors` is float32 [n, dim]. Raises DuplicateIdError, BadIdError."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError."""
        ...

    def write(self, name: str) -> dict[str, FileRecord]:
        """Make additions durable; return the backend's files in the coming generation."""
        ...

    def settle(self) -> None:
        """Finish what has to wait until the manifest is committed."""
        ...

    def renumbered(self, rows: Rows) -> Self:
        """Return an empty backend for rows that are numbered again; this one must not be used any more."""
        ...

    def close(self) -> None:
        """Discard uncommitted changes."""
        ...


class EmbeddedText:
    """Postings that grow in the scratch folder; a commit links them into `text/`."""

    elastic: Mapping[str, Any] = {}

    def __init__(self, directory: Path, analysis: AnalysisSettings, index: Bm25Index) -> None:
        self._directory, self._analysis, self._index = directory, analysis, index

    @classmethod
    def resume(cls, directory: Path, manifest: Manifest, rows: Rows) -> Self:
        """Return the backend that continues from a commit. Raises DamagedError."""
        scratch, analysis = directory / storage.SCRATCH, manifest.analysis
        if manifest.format < WITH_POSTINGS:
            texts = DocumentStore(directory, manifest.segments).texts()
            return cls(directory, analysis, Bm25Index.rebuilt(texts, rows, analysis, scratch))
        folder = text_folder(directory, manifest)
        return cls(directory, analysis, Bm25Index.resume(folder, scratch, rows, analysis))

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        metadata: Sequence[Metadata] | None = None,
        vectors: Matrix | None = None,
    ) -> None:
        """Add a batch, all or nothing; metadata and vectors ([n, dim]) are stored with the documents, not here.

        Raises DuplicateIdError, BadIdError.
        """
        self._index.add(ids, texts)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError."""
        self._index.remove(ids)

    def write(self, name: str) -> dict[str, FileRecord]:
        """Link the postings into `text/name`; a file's name is its checksum, so no file is read again."""
        self._index.commit()
        faults.point("text.committed")
        target = self._directory / storage.TEXT / name
        target.parent.mkdir(exist_ok=True)
        self._index.snapshot(target)
        records = {}
        for path in sorted(p for p in target.iterdir() if NAME.fullmatch(p.name)):
            records[f"{storage.TEXT}/{name}/{path.name}"] = FileRecord(path.stat().st_size, path.stem)
            writing.sync(path)
        writing.sync(target)
        writing.sync(target.parent)
        return records

    def settle(self) -> None:
        """Do nothing: a commit leaves no work behind."""

    def renumbered(self, rows: Rows) -> Self:
        """Return an empty backend in an emptied scratch folder."""
        self.close()
        scratch = self._directory / storage.SCRATCH
        ownership.sweep(self._directory, (), [storage.SCRATCH])
        index = Bm25Index.resume(None, scratch, rows, self._analysis)
        return type(self)(self._directory, self._analysis, index)

    def close(self) -> None:
        """Discard uncommitted changes."""
        self._index.close()


def resume(directory: Path, manifest: Manifest, rows: Rows) -> TextBackend:
    """Return the backend that the manifest names, continuing from its commit.

    Raises DamagedError, and BackendUnavailableError where a server does not answer.
    """
    if not manifest.elastic:
        return EmbeddedText.resume(directory, manifest, rows)
    from indexes.elastic.stored import ServerText

    return ServerText.resume(manifest, rows)
