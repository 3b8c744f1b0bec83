"""Follow the commits of an index: the last generation is open, and each search sees one generation throughout."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from indexes.anywhere import AnyCollection
from indexes.cluster.client import PRODUCTS
from indexes.collection import Collection
from indexes.hybrid import OnFailure
from indexes.interface import IndexesError, Matrix
from indexes.merger import Merger
from indexes.showing import table
from indexes.store.records import EncoderRecord
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.encoders.opened import OwnEncoder
from linker.engine import sharding
from linker.engine.snapshot import Snapshot

KEPT = 0.25  # how many seconds at least a replaced generation is kept, so that running searches can finish


class Following:
    """An index with its last commit open; see `Engine`."""

    def __init__(
        self,
        directory: str | Path | Sequence[str | Path],
        *,
        encoder: Encoder | None = None,
        on_failure: OnFailure = "degrade",
        follow: bool = True,
        verify: bool = True,
    ) -> None:
        """Open `directory`; `encoder` replaces the encoder that the index names, and must have the same fingerprint.

        Several directories are searched as one index, and cannot be changed. Without `follow`, commits by others are
        seen only after `refresh`. Without `verify`, files are not compared with their checksums.
        """
        self.directory, self.directories = sharding.directories_of(directory)
        self._on_failure, self._follow, self._verify = on_failure, follow, verify
        self._encoder = OwnEncoder(encoder)
        self._opening, self._retiring = threading.Lock(), Retiring()
        self._snapshot: Snapshot | None = self._open()
        self._merger = Merger(self._verified_collection, self._publish)

    @classmethod
    def open(
        cls,
        directory: str | Path | Sequence[str | Path],
        *,
        encoder: str | None = None,
        on_failure: OnFailure = "degrade",
        follow: bool = True,
        verify: bool = True,
    ) -> Self:
        """Open an index, or several as one; `encoder` (name or path) is the encoder's new location, if it has moved.

        Without `follow`, commits by others are seen only after `refresh`. If there are several, an index that cannot
        be opened is left out and named in `Answer.degraded`, unless `on_failure` is "fail". Without `verify`, file
        sizes are checked, but not checksums: a large index then opens in a fraction of the time, and can be verified
        from time to time by `linker index verify`. Raises IndexesError if there is no index or several are
        incompatible, DamagedError naming a damaged file.
        """
        given = load_encoder(encoder, light=True) if encoder else None
        return cls(directory, encoder=given, on_failure=on_failure, follow=follow, verify=verify)

    def _open(self, before: Snapshot | None = None) -> Snapshot:
        return sharding.open_snapshot(self.directories, self._encoder, self._on_failure, before, self._verify)

    def _verified_collection(self) -> Collection | None:
        """Return the open generation if its checksums have been verified, else None."""
        opened = self._snapshot.collection if self._snapshot else None
        return opened if self._verify and isinstance(opened, Collection) else None

    def _publish(self, commit: Callable[[], Collection | None]) -> None:
        with self._opening:
            merged = commit()
            if merged is not None and self._snapshot is not None:
                self._replace(self._snapshot.with_merged(merged))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        facts = self._facts()
        return f"<Engine {str(self.directory)!r}: {', '.join(facts.values()) if facts else 'closed'}>"

    def _repr_html_(self) -> str:
        return table(self._facts().items() or [("closed", "")], caption=str(self.directory))

    def _facts(self) -> dict[str, str]:
        snapshot = self._snapshot
        if snapshot is None:
            return {}
        collection = snapshot.collection
        manifest = collection.manifest
        return {
            "documents": f"{manifest.documents:,} documents",
            "search": collection.hybrid.settings.mode,
            "encoder": _encoder_named(manifest.encoder),
            "backend": PRODUCTS.get(collection.backend, collection.backend),
            "generation": f"generation {manifest.generation}",
        }

    def close(self) -> None:
        """Release the index's files and the encoder once running searches and merges have ended. Idempotent."""
        self._merger.wait()
        with self._opening:
            self._snapshot = None
        self._retiring.close()
        self._encoder.forget()

    def refresh(self) -> bool:
        """Open the last committed generation; return whether it differs from the previous one.

        Only new files are read and checked. Raises IndexesError if the index is gone or the engine is
        closed, DamagedError naming a damaged file.
        """
        with self._opening:
            return self._reopen()

    def _reopen(self) -> bool:
        old = self._current()
        if old.is_last():
            return False
        self._replace(self._open(old))
        return True

    def _replace(self, new: Snapshot) -> None:
        old, self._snapshot = self._snapshot, new
        self._retiring.put(old)

    def _current(self) -> Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            raise IndexesError(f"the engine over {self.directory} is closed: open it again with Engine.open")
        return snapshot

    def _latest(self) -> Snapshot:
        """Return the last committed generation, or the previous one while another thread is opening the last."""
        snapshot = self._current()
        if self._follow and snapshot.is_old() and self._opening.acquire(blocking=False):
            try:
                self._reopen()
            finally:
                self._opening.release()
        return self._current()

    @property
    def collection(self) -> AnyCollection:
        """The generation currently open. Raises IndexesError if the engine is closed."""
        return self._current().collection

    @property
    def encoder(self) -> Encoder:
        """The index's encoder, loaded and checked on first use. Raises BackendUnavailableError if that fails."""
        return self._current().encoder

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of queries, float32 [n, dim]. Raises BackendUnavailableError without the encoder."""
        return self._current().embed(texts)


def _encoder_named(record: EncoderRecord | None) -> str:
    if record is None:
        return "no encoder"
    return (
        f"encoder {record.name}" if record.fingerprint else f"vectors from elsewhere, {record.dim} dimensions"
    )


class Retiring:
    """Keeps replaced generations until the searches that began with them have ended.

    The thread that drops the last reference to a generation has to delete the files that the commit replaced, and to
    wait for the disk. This class has a thread of its own for that, so that no search pays for it.
    """

    def __init__(self) -> None:
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._replaced: list[object] = []
        self._thread: threading.Thread | None = None

    def put(self, generation: object) -> None:
        """Keep a generation for KEPT to twice KEPT seconds."""
        with self._lock:
            self._replaced.append(generation)
            # After a fork, the child does not have the thread of its parent.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="release generations", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Release all replaced generations now."""
        self._closed.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while kept := self._take():
            self._closed.wait(KEPT)
            kept.clear()

    def _take(self) -> list[object]:
        """Return the generations put since the last call; if there are none, let the thread end."""
        with self._lock:
            kept, self._replaced = self._replaced, []
            if not kept:
                self._thread = None
            return kept
