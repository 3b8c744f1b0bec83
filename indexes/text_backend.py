"""A collection's text backend, as used by its writer: postings in the directory, or an index on Elasticsearch."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from indexes.collection import NOTHING, SharedParts
from indexes.disk import faults
from indexes.disk.writing import FileRecord
from indexes.interface import Document, Matrix
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store import ownership
from indexes.store.records import Manifest
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.forward import NAME as FORWARD
from indexes.text.forward_index import ForwardIndex
from indexes.text.parameters import AnalysisSettings
from indexes.text.postings import NAME


class TextBackend(Protocol):
    """The interface through which a writer uses a text backend."""

    @property
    def elastic(self) -> Mapping[str, Any]:
        """Settings of the server, as the manifest stores them; empty if there is none."""
        ...

    def add_documents(self, documents: Sequence[Document], vectors: Matrix | None = None) -> None:
        """Add a batch, all or nothing; `vectors` is float32 [n, dim]. Raises DuplicateIdError, BadIdError."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError."""
        ...

    def write(self, name: str) -> dict[str, FileRecord]:
        """Write the additions; return the backend's files in the next generation, which the commit makes durable."""
        ...

    def settle(self) -> None:
        """Finish the work that has to wait until the manifest is committed."""
        ...

    def renumbered(self, rows: Rows) -> Self:
        """Return an empty backend for renumbered rows; this one must not be used any more."""
        ...

    def close(self) -> None:
        """Discard uncommitted changes."""
        ...


class EmbeddedText:
    """Postings that grow in the scratch folder; a commit links them into `text/`."""

    elastic: Mapping[str, Any] = {}

    def __init__(self, directory: Path, manifest: Manifest, index: Bm25Index | FieldsIndex) -> None:
        self._directory, self._manifest, self._index = directory, manifest, index

    @classmethod
    def resume(cls, directory: Path, manifest: Manifest, rows: Rows, known: SharedParts) -> Self:
        """Return the backend that continues from a commit. Raises DamagedError."""
        folder, building = storage.text_folder(directory, manifest), not manifest.build.complete
        return cls._continue(directory, manifest, folder, rows, known, building=building)

    @classmethod
    def _continue(
        cls,
        directory: Path,
        manifest: Manifest,
        folder: Path | None,
        rows: Rows,
        known: SharedParts = NOTHING,
        *,
        building: bool = True,
    ) -> Self:
        scratch, analysis, bm25 = directory / storage.SCRATCH, manifest.analysis, manifest.bm25
        if bm25.fields:
            fields = FieldsIndex.resume(
                folder, scratch, rows, analysis, bm25, known.postings, building=building
            )
            return cls(directory, manifest, fields)
        index = Bm25Index.resume(folder, scratch, rows, analysis, known=known.postings, building=building)
        return cls(directory, manifest, index)

    def add_documents(self, documents: Sequence[Document], vectors: Matrix | None = None) -> None:
        """Add a batch, all or nothing, ignoring metadata and vectors. Raises DuplicateIdError, BadIdError."""
        if isinstance(self._index, FieldsIndex):
            self._index.add(documents)
        else:
            self._index.add([d.id for d in documents], [d.full_text for d in documents])

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError."""
        self._index.remove(ids)

    def write(self, name: str) -> dict[str, FileRecord]:
        """Link the postings into `text/name`; a file's name is its checksum, so no file is reread."""
        self._index.commit()
        faults.point("text.committed")
        if isinstance(self._index, Bm25Index):
            return _link(self._directory, name, self._index.snapshot, NAME)
        files: dict[str, FileRecord] = {}
        for folder, index in self._index.folders.items():
            files |= _link(self._directory, f"{name}/{folder}", index.snapshot, NAME)
        return files

    def settle(self) -> None:
        """Do nothing: a commit leaves no work behind."""

    def renumbered(self, rows: Rows) -> Self:
        """Return an empty backend in an emptied scratch folder."""
        self.close()
        ownership.sweep(self._directory, (), [storage.SCRATCH])
        return self._continue(self._directory, self._manifest, None, rows)

    def close(self) -> None:
        """Discard uncommitted changes."""
        self._index.close()


class WithForward:
    """A text backend with a forward index next to it, whose files are also in `text/`."""

    def __init__(
        self, directory: Path, analysis: AnalysisSettings, text: TextBackend, index: ForwardIndex
    ) -> None:
        self._directory, self._analysis, self._text, self._index = directory, analysis, text, index

    @classmethod
    def resume(cls, directory: Path, manifest: Manifest, text: TextBackend, known: SharedParts) -> Self:
        """Return `text`, which has filled the scratch folder, plus the forward index of the same commit."""
        folder, scratch = storage.text_folder(directory, manifest), directory / storage.SCRATCH
        building = not manifest.build.complete
        index = ForwardIndex.resume(folder, scratch, manifest.analysis, known.forward, building=building)
        return cls(directory, manifest.analysis, text, index)

    @property
    def elastic(self) -> Mapping[str, Any]:
        """Settings of the server, as the manifest stores them; empty if there is none."""
        return self._text.elastic

    def add_documents(self, documents: Sequence[Document], vectors: Matrix | None = None) -> None:
        """Add a batch, all or nothing. Raises DuplicateIdError, BadIdError."""
        self._text.add_documents(documents, vectors)
        self._index.add([d.full_text for d in documents])

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing; its terms stay until the index is compacted. Raises UnknownIdError."""
        self._text.remove(ids)

    def write(self, name: str) -> dict[str, FileRecord]:
        """Write the additions; return the files of both in the next generation."""
        files = self._text.write(name)
        self._index.commit()
        faults.point("forward.committed")
        return files | _link(self._directory, name, self._index.snapshot, FORWARD)

    def settle(self) -> None:
        """Finish the work that has to wait until the manifest is committed."""
        self._text.settle()

    def renumbered(self, rows: Rows) -> Self:
        """Return an empty backend for renumbered rows; this one must not be used any more."""
        ownership.sweep(self._directory, (), [storage.SCRATCH])
        text = self._text.renumbered(rows)
        index = ForwardIndex.resume(None, self._directory / storage.SCRATCH, self._analysis)
        return type(self)(self._directory, self._analysis, text, index)

    def close(self) -> None:
        """Discard uncommitted changes."""
        self._text.close()


def _link(
    directory: Path, name: str, snapshot: Callable[[Path], None], ours: re.Pattern[str]
) -> dict[str, FileRecord]:
    """Take a snapshot into `text/name` and return its files' records; their names are their checksums."""
    target = directory / storage.TEXT / name
    target.mkdir(parents=True, exist_ok=True)
    snapshot(target)
    paths = sorted(p for p in target.iterdir() if ours.fullmatch(p.name))
    return {f"{storage.TEXT}/{name}/{p.name}": FileRecord(p.stat().st_size, p.stem) for p in paths}


def resume(directory: Path, manifest: Manifest, rows: Rows, known: SharedParts = NOTHING) -> TextBackend:
    """Return the manifest's backend, reusing `known` segments. Raises DamagedError, BackendUnavailableError."""
    text: TextBackend
    if manifest.elastic:
        from indexes.cluster.beside import ServerText

        text = ServerText.resume(manifest, rows)
    else:
        text = EmbeddedText.resume(directory, manifest, rows, known)
    return WithForward.resume(directory, manifest, text, known) if manifest.positions else text
