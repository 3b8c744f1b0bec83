"""Indexes on Elasticsearch and OpenSearch: BM25 and vectors next to a directory, or a whole index without one."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.cluster.abilities import ABILITIES, Abilities, refusal, vectors_of
    from indexes.cluster.checking import check, compare
    from indexes.cluster.client import PRODUCTS, ElasticSettings
    from indexes.cluster.collection import RemoteCollection, open_remote
    from indexes.cluster.connection import NoMasterError
    from indexes.cluster.index import ClusterIndex
    from indexes.cluster.states import drop, manifest_of, size_of
    from indexes.cluster.writer import RemoteWriter

__all__ = [
    "ABILITIES",
    "PRODUCTS",
    "Abilities",
    "ClusterIndex",
    "ElasticSettings",
    "NoMasterError",
    "RemoteCollection",
    "RemoteWriter",
    "check",
    "compare",
    "drop",
    "manifest_of",
    "open_remote",
    "refusal",
    "size_of",
    "vectors_of",
]
__getattr__ = lazy(__name__)
