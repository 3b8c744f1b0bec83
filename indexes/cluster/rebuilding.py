"""Copy an index on a cluster into a new generation, with a different number of shards or replicas."""

import contextlib
import dataclasses
import itertools

from indexes.address import Address
from indexes.cluster.client import WRITE_SECONDS, ElasticSettings
from indexes.cluster.index import ClusterIndex
from indexes.cluster.mapping import document_of
from indexes.cluster.reads import BATCH
from indexes.cluster.sending import DirectSender, vector_kind
from indexes.cluster.states import state_at, stored_manifest
from indexes.disk import faults
from indexes.interface import BackendUnavailableError
from indexes.store.records import Manifest

FOLLOWED = 15.0  # seconds after which every reader has looked up the name again, and its searches have ended


def rebuild(address: Address, shards: int | None = None, replicas: int | None = None) -> Manifest:
    """Copy an index into a new generation, which takes over the name; return its manifest.

    Documents keep their stamps, and their vectors are read from the servers. Searches continue meanwhile; writers
    wait, since the servers refuse changes to the old generation, and later write to the new one. An interrupted
    rebuild does not move the name, and the next one starts from the beginning. Raises the same errors as `state_at`,
    and BackendUnavailableError if a document is missing from the copy.
    """
    state = state_at(address, to_write=True)
    current = ElasticSettings.of(address, state.shards, state.replicas)
    settings = dataclasses.replace(
        current, shards=shards or current.shards, replicas=current.replicas if replicas is None else replicas
    )
    manifest = stored_manifest(address, state)
    with contextlib.closing(ClusterIndex(current, state.name, WRITE_SECONDS)) as old:
        old.block_writes()
        try:
            with contextlib.closing(_next(settings, manifest)) as new:
                _copy(old, new, manifest)
                # Read the settings again: they are in the mapping, which can change even while writes are blocked.
                manifest = stored_manifest(address, state_at(address))
                new.describe(manifest)
                faults.point("elastic.copied")
                new.promote(FOLLOWED)
                documents = new.count()
        except BaseException:
            with contextlib.suppress(BackendUnavailableError):
                old.allow_writes()
            raise
    return dataclasses.replace(manifest, documents=documents, elastic=settings.to_json())


def _next(settings: ElasticSettings, manifest: Manifest) -> ClusterIndex:
    with contextlib.closing(ClusterIndex(settings)) as named:
        return named.next_generation(*vector_kind(manifest), manifest.bm25)


def _copy(old: ClusterIndex, new: ClusterIndex, manifest: Manifest) -> None:
    """Copy all documents. Raises BackendUnavailableError if their number differs afterwards."""
    old.refresh()
    sender, (dim, _) = DirectSender(new, manifest), vector_kind(manifest)
    scan = old.scan(source=True)
    while part := list(itertools.islice(scan, BATCH)):
        vectors = old.vectors([id_ for id_, _ in part], dim) if dim else None
        for n, (_, source) in enumerate(part):
            document = document_of(source, old.name)
            sender.put([document], None if vectors is None else vectors[n][None], source["stamp"])
    sender.flush()
    new.refresh()
    if (count := new.count()) != (expected := old.count()):
        raise BackendUnavailableError(f"only {count} of {expected} documents arrived: try again")
