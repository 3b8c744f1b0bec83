"""How documents lie in Elasticsearch: the fields of an index, and metadata as terms."""

from __future__ import annotations

from typing import Any

from indexes.analysis import encodable
from indexes.interface import Metadata, filter_values

KINDS = ("flat", "hnsw", "int8_hnsw")
PREFIX = "elastic-"  # of the kinds' names in a manifest, where the vectors live on the server
FORMAT = 1
# Twice the server's own, with which recall fell to .86 where many vectors are alike.
LINKS = {"m": 32, "ef_construction": 200}


def mapping(dim: int, kind: str) -> dict[str, Any]:
    """Return how the fields are indexed; `dim` 0 leaves vectors out.

    The vectors are normalised, so their inner product is the cosine; the type "cosine" would refuse an empty
    text's zero vector.
    """
    properties: dict[str, Any] = {
        "row": {"type": "long"},
        "id": {"type": "keyword", "index": False, "doc_values": False},
        "terms": {"type": "text", "analyzer": "whitespace"},
        "meta": {"type": "keyword"},
    }
    if dim:
        vector: dict[str, Any] = {"type": "dense_vector", "dims": dim, "element_type": "float"}
        if kind == "flat":
            vector["index"] = False
        else:
            vector |= {
                "index": True,
                "similarity": "max_inner_product",
                "index_options": {"type": kind, **LINKS},
            }
        properties["vector"] = vector
    return {
        "dynamic": "strict",
        "_meta": {"linker": {"format": FORMAT, "dim": dim, "vectors": kind if dim else "none"}},
        "_source": {"excludes": ["vector"]},  # a vector is kept once, not in the document's JSON as well
        "properties": properties,
    }


def meta_terms(metadata: Metadata) -> list[str]:
    """Return the terms under which a document's metadata can be filtered."""
    from indexes.bm25 import meta_term

    return [
        encodable(meta_term(name, one)) for name, value in metadata.items() for one in filter_values(value)
    ]
