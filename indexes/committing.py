"""Makes a writer's pending changes durable as the files of the next generation, and commits them."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexes import text_backend
from indexes.anywhere import AnyWriter
from indexes.collection import NOTHING, SharedParts
from indexes.disk import faults, writing
from indexes.disk.writing import FileRecord
from indexes.interface import Document, IndexesError, Matrix
from indexes.store import files as storage
from indexes.store import generations
from indexes.store.documents import DocumentStore, read_rows
from indexes.store.records import Manifest, Segment
from indexes.store.segments import write_segment
from indexes.stored_vectors import has_graph, write_graph

COMMITTED = tuple(f for f in storage.FOLDERS if f not in (storage.SCRATCH, storage.MERGING))


class Committer(AnyWriter):
    """Collects the changes since the last commit and commits them as the next generation."""

    def __init__(
        self, directory: Path, manifest: Manifest, building: bool = False, known: SharedParts = NOTHING
    ) -> None:
        self.directory, self.manifest, self._building = directory, manifest, building
        generations.sweep(directory, manifest)
        documents = DocumentStore(directory, manifest.segments, known.documents)
        self.rows = read_rows(directory, manifest, documents, known.rows)
        self._text = text_backend.resume(directory, manifest, self.rows, known)
        self._clear()

    def _clear(self) -> None:
        self._documents: list[Document] = []
        self._vectors: list[Matrix] = []
        self._quarantine: list[bytes] = []
        self._removed = False

    def store_encoder(self, name: str, folder: Path) -> Manifest:
        """Commit a copy of the encoder in `folder` under `encoder/name`: the same model, in different files.

        Raises IndexesError if `name` is in use.
        """
        old, name = self.manifest, f"{storage.ENCODER}/{name}"
        if old.encoder is None or old.encoder.name == name:
            raise IndexesError(f"{self.directory / name} is in use, or the index has no encoder")
        return self._commit_copy(name, folder, encoder=dataclasses.replace(old.encoder, name=name))

    def _store(self, kind: str, name: str, folder: Path) -> Manifest:
        name = f"{kind}/{name}"
        return self._commit_copy(name, folder, search={**self.manifest.search, kind: name})

    def _commit_copy(self, name: str, folder: Path, **changes: Any) -> Manifest:
        """Commit a copy of a folder as `name`, in place of its predecessor, and `changes` to the manifest."""
        files = dict(self.manifest.files)
        replace(files, name.partition("/")[0], storage.copy_folder(self.directory, name, folder))
        faults.point("stored.copied")
        manifest = dataclasses.replace(self.manifest, generation=self.manifest.generation + 1, **changes)
        return self._replace_manifest(manifest, files)

    def _replace_manifest(self, manifest: Manifest, files: Mapping[str, FileRecord]) -> Manifest:
        manifest = dataclasses.replace(manifest, files=files, elastic=self._text.elastic)
        faults.point("commit.prepared")
        generations.retain(self.directory, self.manifest)
        storage.replace_manifest(self.directory, manifest, self.manifest.files)
        self.manifest = manifest
        self._text.settle()
        self._clear()
        generations.sweep(self.directory, manifest, COMMITTED)
        faults.point("commit.ended")
        return manifest

    def _write_files(self, name: str, manifest: Manifest, merged: Sequence[Segment]) -> dict[str, FileRecord]:
        files = dict(self.manifest.files)
        if self._documents or merged:
            earlier = [segment.name for segment in merged]
            folders = tuple(f"{storage.SEGMENTS}/{segment}/" for segment in earlier)
            storage.check(self.directory, {n: record for n, record in files.items() if n.startswith(folders)})
            for segment in earlier:
                replace(files, f"{storage.SEGMENTS}/{segment}", {})
            files |= write_segment(self.directory, name, self._documents, self._vectors, earlier)
        if self._documents:
            replace(files, storage.TEXT, self._text.write(name))
        faults.point("commit.text")
        if self._removed:
            dead = np.ascontiguousarray(self.rows.dead, dtype="<i8")
            replace(files, storage.DELETED, self._write(storage.DELETED, f"{name}.i64", [dead.data]))
        if self._quarantine:
            lines = (line + b"\n" for line in self._quarantine)
            files |= self._write(storage.QUARANTINE, f"{name}.jsonl", lines)
        graph_is_old = self._documents or manifest.build.complete > self.manifest.build.complete
        if graph_is_old and has_graph(manifest):
            base = dataclasses.replace(manifest, files=self.manifest.files)
            replace(files, storage.GRAPH, write_graph(self.directory, name, base, self.rows))
        return files

    def _write(self, folder: str, name: str, parts: Iterable[bytes | memoryview]) -> dict[str, FileRecord]:
        path = self.directory / folder / name
        path.parent.mkdir(exist_ok=True)
        return {f"{folder}/{name}": writing.write(path, parts)}


def replace(files: dict[str, FileRecord], folder: str, new: Mapping[str, FileRecord]) -> None:
    """Replace the files of a folder in the list of a generation's files."""
    for old in [f for f in files if f.startswith(f"{folder}/")]:
        del files[old]
    files.update(new)
