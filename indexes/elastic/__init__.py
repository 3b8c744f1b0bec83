"""Text and vector retrieval on Elasticsearch: client, mapping, bulk requests, and a circuit breaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.elastic.breaker import Breaker
    from indexes.elastic.client import ElasticSettings
    from indexes.elastic.retrievers import ElasticText, ElasticVectors
    from indexes.elastic.server_index import ElasticStore

__all__ = ["Breaker", "ElasticSettings", "ElasticStore", "ElasticText", "ElasticVectors"]
__getattr__ = lazy(
    __name__,
    {
        "Breaker": "indexes.elastic.breaker",
        "ElasticSettings": "indexes.elastic.client",
        "ElasticStore": "indexes.elastic.server_index",
        "ElasticText": "indexes.elastic.retrievers",
        "ElasticVectors": "indexes.elastic.retrievers",
    },
)
