"""An index by what the user gives for it: a directory, or an address of one on a cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from indexes.address import Address
from indexes.remote.collection import load, state_at
from indexes.remote.store import RemoteStore, generation, settings_of
from indexes.remote.writer import RemoteWriter
from indexes.store import manifest as manifests
from indexes.store.records import Manifest
from indexes.writer import Writer


def manifest_of(directory: Path) -> Manifest:
    """Return the manifest of the index in a directory or at an address. Raises as `manifest.load`, `remote.load`."""
    address = Address.of(directory)
    return load(address) if address else manifests.load(directory)


def writer_of(directory: Path, keep: int | None = None, *, wait: float = 0) -> AbstractContextManager[Writer]:
    """Open an index for changes; on a cluster nobody waits for other writers. Raises as `Writer.open`."""
    address = Address.of(directory)
    return RemoteWriter.change(address, keep) if address else Writer.open(directory, keep, wait=wait)


def drop(address: Address) -> tuple[int, int]:
    """Delete an index on a cluster, or what an interrupted build has left; return its documents and generation.

    Raises IndexesError where there is neither, BackendUnavailableError.
    """
    store = RemoteStore(settings_of(address))
    try:
        state = store.state() or store.unfinished() or state_at(address)
        documents = RemoteStore(store.settings, state.name).count()
        store.remove_all()
    finally:
        store.close()
    return documents, generation(state.name)


def size_of(address: Address) -> int:
    """Return the bytes that an index takes on the cluster, copies included. Raises BackendUnavailableError."""
    store = RemoteStore(settings_of(address))
    try:
        return store.bytes()
    finally:
        store.close()
