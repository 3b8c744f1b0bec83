"""An index on a cluster, as opened by an `Engine`."""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from indexes.address import Address
from indexes.cluster import NoMasterError, RemoteCollection, open_remote
from indexes.hybrid import Answer, OnFailure
from indexes.interface import Document, Hits, IndexesError
from linker.encoders.opened import OwnEncoder
from linker.engine.snapshot import Snapshot

FOLLOW = 5.0  # seconds until the name is looked up again


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
        """Return whether the name points elsewhere or the settings have changed, checked at most every FOLLOW
        seconds.

        If a server does not answer, this is unknown: the search will report it. Raises BackendUnavailableError if
        the node that answers has no master.
        """
        return time.monotonic() - self._looked >= FOLLOW and self._look()

    def is_last(self) -> bool:
        """Return whether the name points here and the settings are the same. Raises IndexesError if it is gone."""
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
        """Return an answer whose documents are read per query, all hits at once, when the first is requested."""
        answer = super()._readable(answer, texts)
        hits = [dataclasses.replace(one, read=_together(self.collection, one)) for one in answer.hits]
        return dataclasses.replace(answer, hits=hits)


def _together(collection: RemoteCollection, hits: Hits) -> Callable[[str], Document]:
    """Return a reader of the hits' documents: the first call reads all. Raises UnknownIdError for a deleted one."""
    lock = threading.Lock()

    @functools.cache
    def documents() -> dict[str, Document]:
        return collection.documents.read(hits.ids)

    def read(id_: str) -> Document:
        with lock:
            found = documents()
        return found[id_] if id_ in found else collection.document(id_)

    return read
