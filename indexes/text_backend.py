"""A collection's text backend, as used by its writer: postings in the directory, or an index on Elasticsearch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from indexes.collection import NOTHING, SharedParts
from indexes.disk import faults, writing
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

Identity = tuple[int, int, int, str]  # identity of a file: device, inode, time of the last write, name


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
        """Make additions durable; return the backend's files in the next generation."""
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
        self._durable = durable_files(directory, manifest)

    @classmethod
    def resume(cls, directory: Path, manifest: Manifest, rows: Rows, known: SharedParts) -> Self:
        """Return the backend that continues from a commit. Raises DamagedError."""
        folder, building = storage.text_folder(directory, manifest), not manifest.build.complete
        return cls._continued(directory, manifest, folder, rows, known, building=building)

    @classmethod
    def _continued(
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
            return _linked(self._directory, name, self._index.snapshot, NAME, self._durable)
        files: dict[str, FileRecord] = {}
        for folder, index in self._index.folders.items():
            files |= _linked(self._directory, f"{name}/{folder}", index.snapshot, NAME, self._durable)
        return files

    def settle(self) -> None:
        """Do nothing: a commit leaves no work behind."""

    def renumbered(self, rows: Rows) -> Self:
        """Return an empty backend in an emptied scratch folder."""
        self.close()
        ownership.sweep(self._directory, (), [storage.SCRATCH])
        return self._continued(self._directory, self._manifest, None, rows)

    def close(self) -> None:
        """Discard uncommitted changes."""
        self._index.close()


class WithForward:
    """A text backend with a forward index next to it, whose files are also in `text/`."""

    def __init__(
        self,
        directory: Path,
        analysis: AnalysisSettings,
        text: TextBackend,
        index: ForwardIndex,
        durable: set[Identity],
    ) -> None:
        self._directory, self._analysis, self._text, self._index = directory, analysis, text, index
        self._durable = durable

    @classmethod
    def resume(cls, directory: Path, manifest: Manifest, text: TextBackend, known: SharedParts) -> Self:
        """Return `text`, which has filled the scratch folder, plus the forward index of the same commit."""
        folder, scratch = storage.text_folder(directory, manifest), directory / storage.SCRATCH
        building = not manifest.build.complete
        index = ForwardIndex.resume(folder, scratch, manifest.analysis, known.forward, building=building)
        return cls(directory, manifest.analysis, text, index, durable_files(directory, manifest))

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
        """Make additions durable; return the files of the text backend and of the forward index."""
        files = self._text.write(name)
        self._index.commit()
        faults.point("forward.committed")
        return files | _linked(self._directory, name, self._index.snapshot, FORWARD, self._durable)

    def settle(self) -> None:
        """Finish the work that has to wait until the manifest is committed."""
        self._text.settle()

    def renumbered(self, rows: Rows) -> Self:
        """Return an empty backend for renumbered rows; this one must not be used any more."""
        ownership.sweep(self._directory, (), [storage.SCRATCH])
        text = self._text.renumbered(rows)
        index = ForwardIndex.resume(None, self._directory / storage.SCRATCH, self._analysis)
        return type(self)(self._directory, self._analysis, text, index, self._durable)

    def close(self) -> None:
        """Discard uncommitted changes."""
        self._text.close()


def durable_files(directory: Path, manifest: Manifest) -> set[Identity]:
    """Return the identities of the files in `text/` that an earlier commit has flushed to the disk."""
    paths = [directory / name for name in manifest.files if name.startswith(f"{storage.TEXT}/")]
    return {_identity(path) for path in paths}


def _identity(path: Path) -> Identity:
    """Return an identity that a file's links share, but no later file has: inode numbers are soon reused."""
    status = path.stat()
    return *writing.inode(status), status.st_mtime_ns, path.name


def _linked(
    directory: Path,
    name: str,
    snapshot: Callable[[Path], None],
    ours: re.Pattern[str],
    durable: set[Identity],
) -> dict[str, FileRecord]:
    """Take a snapshot into `text/name` and return its files' records; their names are their checksums.

    Links to `durable` files need not be flushed; the others are flushed, and become durable.
    """
    target = directory / storage.TEXT / name
    target.mkdir(parents=True, exist_ok=True)
    snapshot(target)
    records = {}
    for path in sorted(p for p in target.iterdir() if ours.fullmatch(p.name)):
        records[f"{storage.TEXT}/{name}/{path.name}"] = FileRecord(path.stat().st_size, path.stem)
        if (identity := _identity(path)) not in durable:
            writing.sync(path)
            durable.add(identity)
    for folder in (target, *target.parents[: len(Path(name).parts)]):
        writing.sync(folder)
    return records


def resume(directory: Path, manifest: Manifest, rows: Rows, known: SharedParts = NOTHING) -> TextBackend:
    """Return the manifest's backend, reusing `known` segments. Raises DamagedError, BackendUnavailableError."""
    text: TextBackend
    if manifest.elastic:
        from indexes.cluster.beside import ServerText

        text = ServerText.resume(manifest, rows)
    else:
        text = EmbeddedText.resume(directory, manifest, rows, known)
    return WithForward.resume(directory, manifest, text, known) if manifest.positions else text
