"""A committed generation of an index, which loads the encoder of its vectors and detects later commits."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from indexes.anywhere import AnyCollection
from indexes.collection import Collection
from indexes.hybrid import OnFailure
from indexes.interface import IndexesError, Matrix
from indexes.store import manifest as manifests
from linker.encoders.interface import Encoder
from linker.encoders.opened import OwnEncoder
from linker.engine.lexicons import Translated
from linker.engine.torch_scan import gpu_scan

Stamp = tuple[int, int, int, int]


def stamp(directory: Path) -> Stamp | None:
    """Return a stamp that changes with each commit, without reading the manifest; None if there is no manifest."""
    try:
        status = os.stat(f"{directory}/{manifests.NAME}")  # noqa: PTH116 # runs before every search; twice as fast
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


class Generation:
    """A committed generation. Any number of threads may read it; later commits do not disturb it."""

    def __init__(
        self, collection: AnyCollection, seen: Stamp | None, encoder: OwnEncoder, on_failure: OnFailure
    ) -> None:
        """`seen`: the stamp of the index directory, taken before the generation was opened."""
        self.collection, self._stamp = collection, seen
        self._encoder, self._on_failure = encoder, on_failure

    @classmethod
    def open(
        cls,
        directory: Path,
        encoder: OwnEncoder,
        on_failure: OnFailure,
        before: Generation | None = None,
        verify: bool = True,
    ) -> Self:
        """Open the last commit; files that `before` has already checked are not read again. See `Collection.open`."""
        since = stamp(directory)  # taken first, so that a concurrent commit is noticed later
        old = before.collection if before else None
        assert old is None or isinstance(old, Collection)
        collection = Collection.open(
            directory, on_failure=on_failure, scan=gpu_scan(), before=old, verify=verify
        )
        return cls(collection, since, encoder, on_failure)

    def with_merged(self, collection: Collection) -> Self:
        """Return the generation that a merge has just committed, with the same encoder and settings as this one."""
        return type(self)(collection, stamp(collection.directory), self._encoder, self._on_failure)

    def is_old(self) -> bool:
        """Return whether there is a later commit, by one `stat`; False for an index that is being dropped."""
        return stamp(self.collection.directory) not in (None, self._stamp)

    def is_last(self) -> bool:
        """Return whether there is no later commit. Raises IndexesError if the index is gone."""
        now = stamp(self.collection.directory)
        if now != self._stamp and manifests.load(self.collection.directory) == self.collection.manifest:
            self._stamp = now
        return now == self._stamp

    def has_moved(self) -> bool:
        """Return whether the last commit names another server index, as after `compact` or `rebuild --url`."""
        with contextlib.suppress(IndexesError):
            last = manifests.load(self.collection.directory)
            return last.elastic != self.collection.manifest.elastic
        return False

    @property
    def encoder(self) -> Encoder:
        """The index's encoder, loaded on first use. Raises the errors of `OwnEncoder.of`."""
        return self._encoder.of(self.collection.directory, self.collection.manifest.encoder)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, float32 [n, dim]. Raises BackendUnavailableError without the encoder."""
        asked = [text.asked if isinstance(text, Translated) else text for text in texts]
        return self._encoder.embed(self.collection.directory, self.collection.manifest.encoder, asked)
