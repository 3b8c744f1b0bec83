"""The index at an address on a cluster: its state, manifest and size, and its deletion."""

import contextlib
import dataclasses
from pathlib import Path

from indexes.address import Address
from indexes.cluster.client import WRITE_SECONDS, ElasticSettings
from indexes.cluster.files import quarantined
from indexes.cluster.index import ClusterIndex, State, generation
from indexes.cluster.mapping import EARLIER, FORMAT
from indexes.interface import IndexesError
from indexes.store import manifest as manifests
from indexes.store.records import Manifest


def state_at(address: Address, *, to_write: bool = False) -> State:
    """Return the current state at an address. Raises IndexesError if there is no index, or BackendUnavailableError.

    A writer waits for the election of a master, as its writes would, if there is another node to try.
    """
    with contextlib.closing(ClusterIndex(ElasticSettings.of(address))) as index:
        state = (
            index.led_state(WRITE_SECONDS if len(address.urls) > 1 else 0.0) if to_write else index.state()
        )
        if state is None and index.unfinished():
            raise IndexesError(
                f"the build of {address} was interrupted: finish it with `linker index build … --resume`, or delete "
                "it with `linker index drop`"
            )
    if state is None:
        raise IndexesError(
            f"there is no index {address.name!r} at {', '.join(address.urls)}: build one with "
            f"`linker index build CORPUS --out {address}`"
        )
    return state


def stored_manifest(address: Address, state: State) -> Manifest:
    """Return the stored manifest, with the number of its generation. Raises DamagedError, IndexesError."""
    if state.format < FORMAT:
        raise IndexesError(f"{address} {EARLIER}")
    manifest = manifests.read(state.stored.encode(), str(address))
    return dataclasses.replace(manifest, generation=max(manifest.generation, generation(state.name)))


def load(address: Address) -> Manifest:
    """Return the manifest of an index with its current counts. Raises the same errors as `state_at`."""
    state = state_at(address)
    settings = ElasticSettings.of(address, state.shards, state.replicas)
    with contextlib.closing(ClusterIndex(settings, state.name)) as index:
        documents, unusable = index.count(), quarantined(index)
    return dataclasses.replace(
        stored_manifest(address, state), elastic=settings.to_json(), documents=documents, quarantined=unusable
    )


def manifest_of(directory: Path) -> Manifest:
    """Return the manifest of an index in a directory or at an address. Raises the errors of both `load` functions."""
    address = Address.of(directory)
    return load(address) if address else manifests.load(directory)


def drop(address: Address) -> tuple[int, int]:
    """Delete an index or a build's leftovers; return its documents and generation. Raises IndexesError."""
    with contextlib.closing(ClusterIndex(ElasticSettings.of(address))) as index:
        state = index.state() or index.unfinished() or state_at(address)
        documents = ClusterIndex(index.settings, state.name).count()
        index.remove_all()
    return documents, generation(state.name)


def size_of(address: Address) -> int:
    """Return the bytes that an index takes on the cluster, including copies. Raises BackendUnavailableError."""
    with contextlib.closing(ClusterIndex(ElasticSettings.of(address))) as index:
        return index.bytes()
