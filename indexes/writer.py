"""Writes a collection: batches in memory and in the scratch folder, then one atomic commit per generation."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from indexes import carrying
from indexes.address import Address
from indexes.anywhere import AnyWriter
from indexes.collection import NOTHING, Collection, SharedParts
from indexes.committing import Committer, replace
from indexes.disk import faults
from indexes.disk.writing import FileRecord
from indexes.interface import Document, IndexesError, Matrix
from indexes.kinds import IN_DIRECTORY, kinds_on
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store import generations, ownership
from indexes.store import manifest as manifests
from indexes.store.documents import DocumentStore
from indexes.store.records import BuildRecord, Manifest, Segment
from indexes.store.segments import copy_segment, own_vectors, storable
from indexes.stored_vectors import has_graph, write_graph
from indexes.text.parameters import Bm25Parameters

BATCH = 1024  # documents read at a time when all texts are reindexed


class Writer(Committer):
    """The only writer of a collection. Nothing is visible to readers, or survives a crash, before `commit`."""

    takes_back = True

    @classmethod
    @contextlib.contextmanager
    def create(
        cls, directory: Path, manifest: Manifest, encoder_folder: Path | None = None, keep: int | None = None
    ) -> Iterator[Self]:
        """Start a collection in a directory that is absent, empty, or left over from a killed creation.

        The files of `encoder_folder` are copied in, so that the index can move to another machine. `keep` is how
        many older generations are kept next to the last one. Raises IndexesError if the language or the kind of
        vectors is unknown or the directory is not vacant, LockedError if another process is writing to it.
        """
        if keep:
            generations.refuse_server(manifest, "older generations cannot be kept")
        kinds = IN_DIRECTORY + (kinds_on("elastic") if manifest.elastic else ())
        if manifest.vectors not in ("none", *kinds):
            raise IndexesError(f"unknown kind of vectors {manifest.vectors!r}: choose {', '.join(kinds)}")
        with storage.disk_errors(f"creating {directory}", resumes=not manifest.build.complete):
            name, copied = "", []
            if encoder_folder and manifest.encoder:
                name = f"{storage.ENCODER}/{manifest.encoder.fingerprint[:16]}"
                copied = [f"{name}/{path.name}" for path in storage.own_files(encoder_folder)]
            with ownership.claim(directory, copied):
                if encoder_folder and manifest.encoder:
                    files = storage.copy_folder(directory, name, encoder_folder)
                    encoder = dataclasses.replace(manifest.encoder, name=name)
                    manifest = dataclasses.replace(manifest, encoder=encoder, files=files)
                faults.point("create.prepared")
                generations.set_limit(directory, keep or 0)
                storage.replace_manifest(directory, manifest)
                with cls._session(directory, manifest, building=True) as writer:
                    yield writer

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        directory: Path,
        keep: int | None = None,
        *,
        resume: bool = False,
        wait: float = 0,
        before: Callable[[], Collection | None] = lambda: None,
    ) -> Iterator[Self]:
        """Open the last committed generation for changes; `wait` is how many seconds to wait for another writer.

        `before` is called once nobody else writes, and returns the open generation; parts shared with it are not read
        or checked again. `keep` is how many older generations are kept from now on; None leaves the number unchanged.
        An index whose build was interrupted can be changed only with `resume`.
        Raises IndexesError if there is no index, LockedError if another writer is still writing to it,
        DamagedError.
        """
        manifest = manifests.load(directory)
        if keep:
            generations.refuse_server(manifest, "older generations cannot be kept")
        disk = storage.disk_errors(f"writing to {directory}", resumes=resume)
        with disk, storage.write_lock(directory, wait):
            ownership.refuse_links(directory)
            opened = before()
            manifest = storage.load_checked(directory, None if opened is None else opened.manifest.files)
            if keep is not None:
                generations.set_limit(directory, keep)
            known = NOTHING if opened is None else opened.shared(manifest)
            with cls._session(directory, manifest, building=resume, known=known) as writer:
                yield writer

    @classmethod
    @contextlib.contextmanager
    def _session(
        cls, directory: Path, manifest: Manifest, building: bool, known: SharedParts = NOTHING
    ) -> Iterator[Self]:
        writer = cls(directory, manifest, building, known)
        try:
            yield writer
        finally:
            # The commit is done; only its copy in the scratch folder is discarded.
            with contextlib.suppress(IndexesError):
                writer._text.close()
            with contextlib.suppress(OSError, IndexesError):
                ownership.sweep(directory, (), [storage.SCRATCH])

    def add(self, documents: Sequence[Document], vectors: Matrix | None) -> None:
        """Add a batch, all or nothing; `vectors` (float32 [n, dim]) if and only if the collection has an encoder.

        Raises BadDocumentError, BadVectorError, BadIdError, DuplicateIdError.
        """
        self._check_complete()
        documents = [storable(d) for d in documents]
        ids = [d.id for d in documents]
        vectors = own_vectors(self.manifest, vectors, ids)
        self._text.add_documents(documents, vectors)
        self._documents.extend(documents)
        if vectors is not None:
            self._vectors.append(vectors)

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of `ids` are in the index now, including uncommitted changes."""
        return self.rows.present(ids)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove the documents with these ids, all or nothing. Raises UnknownIdError."""
        self._check_complete()
        self._text.remove(ids)
        self._removed = True

    def _check_complete(self) -> None:
        """Raise IndexesError if an interrupted build would mistake the change for part of the corpus."""
        if not (self.manifest.build.complete or self._building):
            raise IndexesError(
                f"the build of {self.directory} was interrupted: finish it first with `linker index build … --resume`"
            )

    @property
    def pending(self) -> int:
        """Number of documents that the next commit will add."""
        return len(self._documents)

    def commit(
        self,
        build: BuildRecord | None = None,
        search: Mapping[str, Any] | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> Manifest:
        """Make all changes since the last commit durable in one step; return the new manifest.

        `build`, `search` and `bm25` replace the manifest's records of the same names; a `bm25` without fields leaves
        the index's fields unchanged. Raises IndexesError, also if `bm25` changes settings that only a build can
        change.
        """
        old = self.manifest
        if bm25 and old.elastic and (bm25.k1, bm25.b) != (old.bm25.k1, old.bm25.b):
            raise IndexesError(
                "k1 and b of an index on Elasticsearch are set by its build: give `k1` and `b` there"
            )
        if bm25 and [f.name for f in bm25.fields] != [f.name for f in old.bm25.fields]:
            if bm25.fields:
                raise IndexesError("the fields of an index are set by its build: give `fields` there")
            bm25 = dataclasses.replace(bm25, fields=old.bm25.fields)
        name = f"{old.generation + 1:06d}"
        completes = build is not None and build.complete > old.build.complete
        sizes, building = [s.rows for s in old.segments], not old.build.complete
        count = 0 if completes else carrying.left_alone(sizes, self.pending, carrying.ROWS, building=building)
        untouched, merged = old.segments[:count], old.segments[count:]
        if self._documents or (completes and len(merged) > 1):
            rows = self.pending + sum(s.rows for s in merged)
            segments = (*untouched, Segment(name, rows))
        else:
            segments, merged = old.segments, ()
        manifest = dataclasses.replace(
            old,
            generation=old.generation + 1,
            documents=len(self.rows),
            quarantined=old.quarantined + len(self._quarantine),
            segments=segments,
            build=build or old.build,
            search=old.search if search is None else search,
            bm25=bm25 or old.bm25,
        )
        faults.point("commit.begun")
        return self._replace_manifest(manifest, self._write_files(name, manifest, merged))

    def compact(self) -> Manifest:
        """Commit a generation of one segment without the removed documents, as if they had never been added.

        If documents were removed, the remaining rows are renumbered; BM25 and the approximate structures, which refer
        to row numbers, are then rebuilt. Returns the manifest. Raises IndexesError if there are uncommitted changes.
        """
        if self._documents or self._quarantine or self._removed:
            raise IndexesError("there are uncommitted changes: commit them before compacting")
        old, name, live = self.manifest, f"{self.manifest.generation + 1:06d}", self.rows.mask()
        if live is None and len(old.segments) < 2:
            return old
        documents = len(self.rows)
        segments = (Segment(name, documents),) if documents else ()
        manifest = dataclasses.replace(old, generation=old.generation + 1, segments=segments)
        files = dict(old.files)
        replace(files, storage.SEGMENTS, {})
        faults.point("compact.begun")
        if documents:
            mask = np.ones(documents, dtype=bool) if live is None else live
            files |= copy_segment(self.directory, name, old.segments, self.rows.ids, mask)
        faults.point("compact.copied")
        if live is not None:
            self._renumber(name, manifest, files)
        return self._replace_manifest(manifest, files)

    def _renumber(self, name: str, manifest: Manifest, files: dict[str, FileRecord]) -> None:
        """Rebuild everything that refers to documents by row, and replace its entries in `files`."""
        for folder in (storage.TEXT, storage.DELETED, storage.GRAPH):
            replace(files, folder, {})
        self._restart_text(DocumentStore(self.directory, manifest.segments))
        if manifest.segments:
            files |= self._text.write(name)
        if has_graph(manifest):
            files |= write_graph(self.directory, name, dataclasses.replace(manifest, files=files), self.rows)

    def _restart_text(self, documents: DocumentStore) -> None:
        self.rows = Rows()
        self._text = self._text.renumbered(self.rows)
        encoder = self.manifest.encoder
        blocks = documents.vectors(encoder.dim) if encoder else []
        for start in range(0, documents.rows, BATCH):
            faults.point("compact.text")
            batch = [documents[row] for row in range(start, min(start + BATCH, documents.rows))]
            self._text.add_documents(batch, blocks[0][start : start + BATCH] if blocks else None)


def writer_of(
    directory: Path,
    keep: int | None = None,
    *,
    wait: float = 0,
    before: Callable[[], Collection | None] = lambda: None,
) -> contextlib.AbstractContextManager[AnyWriter]:
    """Open the index in a directory or at an address for changes. Raises the errors of `Writer.open`."""
    if address := Address.of(directory):
        from indexes.cluster.writer import RemoteWriter

        return RemoteWriter.change(address, keep)
    return Writer.open(directory, keep, wait=wait, before=before)
