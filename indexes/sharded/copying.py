"""Create an index on a cluster from other indexes, by copying their documents and vectors."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from indexes.address import Address
from indexes.anywhere import AnyCollection
from indexes.cluster import ABILITIES, ElasticSettings, RemoteWriter, drop, manifest_of, open_remote
from indexes.collection import Collection
from indexes.interface import Document, DuplicateIdError, Matrix
from indexes.kinds import AUTO
from indexes.sharded import agreement
from indexes.store import files as storage
from indexes.store.records import BuildRecord, Manifest

BATCH = 512  # documents copied at a time
COMMIT = 20_000  # documents between two commits


def copy_into(target: Address, sources: Sequence[Path]) -> Manifest:
    """Copy the indexes `sources`, directories or addresses, in this order into a new index; return its manifest.

    Its settings, encoder and kind of vectors are those of the first, and it has as many shards and replicas as the
    largest of those on a cluster. It becomes visible when all documents are copied; a failure leaves nothing behind.
    Raises IndexesError if the sources cannot be searched together or the name is taken, DuplicateIdError if two of them
    contain the same id, DamagedError, BackendUnavailableError.
    """
    named = [(source, manifest_of(source)) for source in sources]
    agreement.check_alike(named)
    servers = [ElasticSettings.from_json(m.elastic) for _, m in named if m.elastic]
    shape = max([1, *(s.shards for s in servers)]), max([0, *(s.replicas for s in servers)])
    with RemoteWriter.begin(target, _new_manifest(target, named), *shape) as writer:
        try:
            for source in sources:
                _copy(source, writer)
            return writer.commit(BuildRecord())
        except BaseException:
            drop(target)
            raise


def _new_manifest(target: Address, sources: Sequence[agreement.Named]) -> Manifest:
    """Return the manifest of the new index, with the first source's tuned settings, but without its learned models."""
    (first, one), *_ = sources
    kinds, encoder = ABILITIES[target.server].vectors, one.encoder
    if encoder and encoder.name.startswith(f"{storage.ENCODER}/"):  # the encoder is the index's own copy
        encoder = dataclasses.replace(encoder, name=str((first / encoder.name).resolve()))
    return Manifest(
        vectors=kinds.get(one.vectors, kinds[AUTO]) if encoder else "none",
        analysis=one.analysis,
        bm25=one.bm25,
        encoder=encoder,
        build=BuildRecord(complete=False),
        search={key: value for key, value in one.search.items() if key in agreement.TUNED},
    )


def _copy(source: Path, writer: RemoteWriter) -> None:
    address = Address.of(source)
    collection: AnyCollection = open_remote(address) if address else Collection.open(source)
    for documents, vectors in _batches(collection):
        try:
            writer.add(documents, vectors)
        except DuplicateIdError as e:
            raise DuplicateIdError(
                f"{address or source} cannot be joined with the indexes before it: {e}"
            ) from None
        if writer.pending >= COMMIT:
            writer.commit()


def _batches(collection: AnyCollection) -> Iterator[tuple[list[Document], Matrix | None]]:
    remaining = collection.matching()
    while documents := list(itertools.islice(remaining, BATCH)):
        ranking = collection.ranking()  # on a cluster, it numbers only these documents
        rows = ranking.rows.locate([document.id for document in documents])
        yield documents, collection.vectors_of(ranking, rows) if collection.manifest.encoder else None
