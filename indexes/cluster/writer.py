"""Writes an index on a cluster: a build fills a new generation, and later changes apply to the live documents."""

import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from indexes.address import Address
from indexes.anywhere import AnyWriter
from indexes.cluster import files
from indexes.cluster.abilities import refusal
from indexes.cluster.bulk import BulkSettings
from indexes.cluster.client import WRITE_SECONDS, ElasticSettings, PassingError
from indexes.cluster.index import ClusterIndex
from indexes.cluster.mapping import delete_document
from indexes.cluster.sending import DirectSender, Sender, vector_kind
from indexes.cluster.states import state_at, stored_manifest
from indexes.disk import faults
from indexes.interface import (
    BackendUnavailableError,
    Document,
    IndexesError,
    Matrix,
    UnknownIdError,
    check_id,
)
from indexes.rows import already_present, name_some
from indexes.store.records import BuildRecord, Manifest
from indexes.store.segments import storable
from indexes.text.parameters import Bm25Parameters

PATIENCE = BulkSettings().patience  # how many seconds a build waits for a server that is down
PAUSE = 1.0  # seconds between tries
STARTING = 10.0  # how many seconds a change waits for shards that are still starting, as after a rebuild

T = TypeVar("T")


class RemoteWriter(AnyWriter):
    """A writer to an index on a cluster, of which any number may be active.

    Additions are sent at once, deletions by `commit`, which waits until readers see all of them: there is no rollback.
    Each written document has a timestamp (stamp) as its version: if two writers write the same document, the later
    stamp wins. A build counts its stamps from the time of its start, so that a resumed build sends the same stamps
    again.
    """

    takes_back = False
    sender: Sender

    def __init__(self, address: Address, index: ClusterIndex, manifest: Manifest, stamp: int = 0) -> None:
        """`stamp` is the next stamp of a build; 0 for changes to a built index, whose stamps are the current time."""
        self.address, self.directory, self.manifest = address, Path(str(address)), manifest
        self._index, self.sender = index, DirectSender(index, manifest)
        self._building, self._stamp = bool(stamp), stamp
        self._committed = stamp
        self._reset()

    def _reset(self) -> None:
        self._sent: set[str] = set()  # ids of documents sent since the last commit
        self._outdated: set[str] = set()  # ids of documents to delete, unless they are added again
        self._absent: set[str] = set()  # ids from the last look-up that are not in the index
        self._quarantine: list[bytes] = []

    @property
    def target(self) -> tuple[ElasticSettings, str]:
        """The servers and the generation to write to."""
        return self._index.settings, self._index.name

    @classmethod
    @contextlib.contextmanager
    def begin(
        cls, address: Address, manifest: Manifest, shards: int = 1, replicas: int = 0
    ) -> Iterator[Self]:
        """Start a build, invisible to readers until its last commit. Raises IndexesError, BackendUnavailableError."""
        settings = ElasticSettings.of(address, shards, replicas)
        with contextlib.closing(ClusterIndex(settings, timeout=WRITE_SECONDS)) as index:
            if index.exists():
                raise IndexesError(
                    f"{address} exists already: name another index, or delete it with `linker index drop`"
                )
            if index.unfinished():
                raise IndexesError(
                    f"a build of {address} was interrupted, or is running: continue it with `resume`, or delete it "
                    "with `linker index drop`"
                )
            stamp = time.time_ns()
            manifest = dataclasses.replace(manifest, elastic=index.settings.to_json())
            index.start(manifest, *vector_kind(manifest), stamp)
            yield cls(address, index, manifest, stamp)

    @classmethod
    @contextlib.contextmanager
    def resume(cls, address: Address) -> Iterator[Self]:
        """Continue an interrupted build from its last commit. Raises IndexesError if there is none."""
        with contextlib.closing(ClusterIndex(ElasticSettings.of(address))) as named:
            state = named.unfinished()
        if state is None:
            raise IndexesError(f"there is no interrupted build of {address}: leave out `resume`")
        settings = ElasticSettings.of(address, state.shards, state.replicas)
        with contextlib.closing(ClusterIndex(settings, state.name, WRITE_SECONDS)) as index:
            yield cls(address, index, stored_manifest(address, state), state.stamp)

    @classmethod
    @contextlib.contextmanager
    def change(cls, address: Address, keep: int | None = None) -> Iterator[Self]:
        """Open an index for changes, concurrently with other writers. Raises the same errors as `state_at`."""
        if keep:
            raise refusal(address, "`keep`")
        state = state_at(address, to_write=True)
        settings = ElasticSettings.of(address, state.shards, state.replicas)
        with contextlib.closing(ClusterIndex(settings, timeout=WRITE_SECONDS)) as index:
            yield cls(address, index, stored_manifest(address, state))

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of `ids` are in the index; documents that a build sent after its last commit do not count."""
        unknown = [id_ for id_ in ids if id_ not in self._sent and id_ not in self._outdated]
        before = self._committed or np.inf
        versions = self._retry(lambda: self._index.versions(unknown))
        known = {id_ for id_, version in versions.items() if version < before}
        self._absent = {*unknown} - known
        return known | (self._sent & {*ids})

    def _retry(self, ask: Callable[[], T]) -> T:
        """Return the result of `ask`, repeated for PATIENCE seconds in a build, whatever the server's failure.

        A change repeats it for STARTING seconds, and only after a PassingError. Raises BackendUnavailableError.
        """
        failure, seconds = (BackendUnavailableError, PATIENCE) if self._building else (PassingError, STARTING)
        end = time.monotonic() + seconds
        while True:
            try:
                return ask()
            except failure:
                if time.monotonic() + PAUSE > end:
                    raise
            time.sleep(PAUSE)

    def add(self, documents: Sequence[Document], vectors: Matrix | None) -> None:
        """Send documents, all or nothing; removed documents are replaced. Raises the same errors as `Writer.add`.

        If another writer adds one of the ids meanwhile, the later stamp wins, and neither writer is notified.
        """
        documents = [storable(d) for d in documents]
        ids = [check_id(d.id) for d in documents]
        self._check_new(ids)
        self.sender.put(documents, vectors, self._stamps(len(ids)).start)
        self._sent.update(ids)
        self._outdated.difference_update(ids)
        self._absent.difference_update(ids)

    def _check_new(self, ids: Sequence[str]) -> None:
        repeated = {id_ for id_, count in Counter(ids).items() if count > 1}
        unknown = [id_ for id_ in ids if id_ not in self._absent]
        if repeated := repeated | (self.present(unknown) if unknown else set()):
            raise already_present(sorted(repeated))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove documents with the next commit, all or nothing. Raises UnknownIdError."""
        present = self.present(ids)
        if missing := [id_ for id_ in dict.fromkeys(ids) if id_ not in present]:
            raise UnknownIdError(f"not in the index: {name_some(missing)}")
        self._outdated.update(ids)
        self._sent.difference_update(ids)

    def _stamps(self, count: int) -> range:
        first = self._stamp if self._building else max(self._stamp, time.time_ns())
        self._stamp = first + count
        return range(first, first + count)

    @property
    def pending(self) -> int:
        """Number of documents that were sent since the last commit."""
        return len(self._sent)

    def commit(
        self,
        build: BuildRecord | None = None,
        search: Mapping[str, Any] | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> Manifest:
        """Wait until the servers have all changes; make them visible to readers unless this is an unfinished build.

        `build`, `search` and `bm25` replace the manifest's records of the same names. If two writers change settings
        concurrently, the later change wins. The last commit of a build moves the index's name to its generation.
        Returns the manifest with the current counts. Raises IndexesError, BackendUnavailableError.
        """
        old = self.manifest
        if bm25 and (bm25.k1, bm25.b) != (old.bm25.k1, old.bm25.b):
            raise IndexesError(
                f"k1 and b of an index on {self._index.settings.product} are set by its build: give `k1` and `b` there"
            )
        for id_, stamp in zip(sorted(self._outdated), self._stamps(len(self._outdated)), strict=True):
            self._index.bulk.put(delete_document(id_, stamp))
        self.sender.flush()
        self._index.bulk.flush()
        faults.point("elastic.flushed")
        if self._quarantine:
            files.quarantine(self._index, self._quarantine, once=self._building)
        manifest = dataclasses.replace(
            old,
            build=build or old.build,
            search=old.search if search is None else search,
            bm25=bm25 or old.bm25,
            generation=old.generation + (search is not None or bm25 is not None),
        )
        self._reset()
        if self._building:
            self._retry(lambda: self._index.describe(manifest, self._stamp))
            self._committed = self._stamp
            if manifest.build.complete:
                self._retry(self._index.refresh)
                self._retry(self._index.promote)
                self._building, self._committed = False, 0
        else:
            if (manifest.search, manifest.bm25) != (old.search, old.bm25):
                self._index.describe(manifest)
            self._index.refresh()
        self.manifest = manifest
        documents, quarantined = self._index.count(), files.quarantined(self._index)
        return dataclasses.replace(manifest, documents=documents, quarantined=quarantined)

    def compact(self) -> Manifest:
        """Reclaim the space of deleted documents, which then no longer count in BM25's statistics."""
        self._index.expunge()
        return dataclasses.replace(self.manifest, documents=self._index.count())

    def _store(self, kind: str, name: str, folder: Path) -> Manifest:
        """Store a folder on the cluster, which readers then adopt; of two changes of settings, the later wins."""
        old, path = self.manifest, f"{kind}/{name}"
        others = {name: record for name, record in old.files.items() if not name.startswith(f"{kind}/")}
        manifest = dataclasses.replace(
            old,
            files=others | files.put(self._index, folder, path),
            search={**old.search, kind: path},
            generation=old.generation + 1,
        )
        faults.point("stored.copied")
        self._index.describe(manifest)
        self.manifest = manifest
        return manifest

    def store_encoder(self, name: str, folder: Path) -> Manifest:
        """Raise IndexesError: an index on a cluster cannot hold a copy of its encoder."""
        raise refusal(self.address, "a copy of the encoder")
