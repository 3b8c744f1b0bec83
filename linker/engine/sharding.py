"""Open the directories of an engine; several are searched as one `Snapshot`, whose shards they are."""

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from indexes.address import Address
from indexes.cluster import NoMasterError, RemoteCollection, open_remote
from indexes.collection import Collection
from indexes.hybrid import Answer, OnFailure
from indexes.interface import DamagedError, Document, Hits, IndexesError, Matrix
from indexes.sharded import ShardedCollection, check_once, open_shards, shards_of
from linker.encoders.opened import OwnEncoder
from linker.engine.generation import Stamp, stamp
from linker.engine.options import SearchOptions
from linker.engine.snapshot import Snapshot
from linker.engine.torch_scan import gpu_scan

FOLLOW = 5.0  # minimum number of seconds between two lookups of a remote index's name
Stamps = Mapping[Path, Stamp | None]


class RemoteSnapshot(Snapshot):
    """A generation of an index on a cluster: its current documents, and its settings as of opening."""

    collection: RemoteCollection

    def __init__(self, collection: RemoteCollection, encoder: OwnEncoder, on_failure: OnFailure) -> None:
        super().__init__(collection, None, encoder, on_failure)
        self._looked, self._answered = time.monotonic(), True

    @classmethod
    def of(cls, address: Address, encoder: OwnEncoder, on_failure: OnFailure) -> Self:
        """Open the index that is now at an address. Raises the errors of `open_remote`."""
        return cls(open_remote(address, on_failure), encoder, on_failure)

    def is_old(self) -> bool:
        """Return whether the index's name points elsewhere or its settings have changed; checked every FOLLOW seconds.

        If no server answers, this is unknown: False is returned, and the search will report it. Raises
        BackendUnavailableError if the node that answers has no master.
        """
        return time.monotonic() - self._looked >= FOLLOW and self._look()

    def is_last(self) -> bool:
        """Return whether the name still points here, with the same settings. Raises IndexesError if it is gone."""
        return self.collection.is_last()

    def has_moved(self) -> bool:
        """Return whether the name now points elsewhere, or the settings have changed. Raises the errors of `is_old`.

        A server that did not answer is not contacted again for FOLLOW seconds.
        """
        return (self._answered or time.monotonic() - self._looked >= FOLLOW) and self._look()

    def _look(self) -> bool:
        try:
            moved, self._answered = self.collection.has_moved(), True
        except NoMasterError:
            raise  # each search will try again
        except IndexesError:
            moved = self._answered = False
        self._looked = time.monotonic()
        return moved

    def _readable(self, answer: Answer, texts: Sequence[str]) -> Answer:
        answer = super()._readable(answer, texts)
        hits = [dataclasses.replace(one, read=_read_together(self.collection, one)) for one in answer.hits]
        return dataclasses.replace(answer, hits=hits)


def _read_together(collection: RemoteCollection, hits: Hits) -> Callable[[str], Document]:
    """Return a function that reads a hit's document (the first call reads all), or raises UnknownIdError if deleted."""
    lock = threading.Lock()

    @functools.cache
    def documents() -> dict[str, Document]:
        return collection.documents.read(hits.ids)

    def read(id_: str) -> Document:
        with lock:
            found = documents()
        return found[id_] if id_ in found else collection.document(id_)

    return read


def directories_of(given: str | Path | Sequence[str | Path]) -> tuple[Path, tuple[Path, ...]]:
    """Return the directory that identifies an index, and the directories that make it up.

    Raises IndexesError if none is given or a directory is named twice, DamagedError if a list of shards cannot be
    read.
    """
    if isinstance(given, (str, Path)):
        return Path(given), tuple(shards_of(Path(given)))
    directories = [Path(directory) for directory in given]
    check_once(directories)
    shards = [shard for directory in directories for shard in shards_of(directory)]
    check_once(shards)
    return shards[0], tuple(shards)


def open_snapshot(
    directories: Sequence[Path],
    encoder: OwnEncoder,
    on_failure: OnFailure,
    before: Snapshot | None = None,
    verify: bool = True,
) -> Snapshot:
    """Open the last generation of one directory, or those of several as one; see `Snapshot.open`."""
    if address := Address.of(directories[0]):
        return RemoteSnapshot.of(address, encoder, on_failure)
    if len(directories) == 1:
        return Snapshot.open(directories[0], encoder, on_failure, before, verify)
    return ShardedSnapshot.of(directories, encoder, on_failure, before, verify)


class ShardedSnapshot(Snapshot):
    """Committed generations of several directories, searched as one; answers name those that could not be opened.

    If a file is found truncated during a search, all shards are reopened and checked, so that its shard is left out.
    """

    def __init__(
        self, collection: ShardedCollection, seen: Stamps, encoder: OwnEncoder, on_failure: OnFailure
    ) -> None:
        super().__init__(collection, None, encoder, on_failure)
        self._shards, self._stamps, self._damaged = collection, seen, False

    @classmethod
    def of(
        cls,
        directories: Sequence[Path],
        encoder: OwnEncoder,
        on_failure: OnFailure,
        before: Snapshot | None = None,
        verify: bool = True,
    ) -> Self:
        """Open the last commit of each directory. Raises the errors of `open_shards`."""
        seen = {directory: stamp(directory) for directory in directories}
        shards = before.sound_shards if isinstance(before, ShardedSnapshot) else {}
        collection = open_shards(
            directories, on_failure=on_failure, scan=gpu_scan(), before=shards, verify=verify
        )
        return cls(collection, seen, encoder, on_failure)

    @property
    def sound_shards(self) -> Mapping[Path, Collection]:
        """The shards, by directory, whose files need no check when reopened; none once a damaged file was found."""
        return {} if self._damaged else {shard.directory: shard for shard in self._shards.shards}

    def is_old(self) -> bool:
        """Return whether there is a later commit, or a missing directory is back; this costs one `stat` per shard."""
        return any(now not in (None, self._stamps[d]) for d, now in self._now().items())

    def is_last(self) -> bool:
        """Return whether nothing has changed since the shards were opened."""
        return not self._damaged and self._now() == self._stamps

    def has_moved(self) -> bool:
        """Return whether a damaged file was found: if so, reopening the shards leaves its shard out."""
        return self._damaged

    def _now(self) -> Stamps:
        return {directory: stamp(directory) for directory in self._stamps}

    def search(self, texts: Sequence[str], options: SearchOptions) -> Answer:
        """Search as `Engine.search` does. Raises DamagedError if a shard's file was truncated."""
        try:
            return super().search(texts, options)
        except DamagedError:
            self._damaged = self._on_failure == "degrade"
            raise

    def by_vectors(self, vectors: Matrix, texts: Sequence[str], options: SearchOptions) -> Answer:
        """Search by query vectors, float32 [n, dim]. Raises the errors of `search`."""
        try:
            return super().by_vectors(vectors, texts, options)
        except DamagedError:
            self._damaged = self._on_failure == "degrade"
            raise

    def _readable(self, answer: Answer, texts: Sequence[str]) -> Answer:
        answer = super()._readable(answer, texts)
        absent = [f"{directory} unavailable: {error}" for directory, error in self._shards.absent.items()]
        return dataclasses.replace(
            answer,
            degraded="; ".join([*([answer.degraded] if answer.degraded else []), *absent]),
            notes=(*answer.notes, *self._shards.remarks),
        )
