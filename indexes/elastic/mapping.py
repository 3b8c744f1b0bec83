"""How documents lie in Elasticsearch: the fields of an index, and metadata as terms."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xxhash

from indexes.interface import Matrix, Metadata, filter_values
from indexes.text.analysis import encodable

FORMAT = 2
LONGEST_VALUE = 200  # characters of a metadata value kept as they are; longer ones by checksum
# Twice the server's own, with which recall fell to .86 where many vectors are alike.
LINKS = {"m": 32, "ef_construction": 200}
APART = 1e-4  # how far a vector is moved before it enters a graph


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
        vector = {"type": "dense_vector", "dims": dim, "element_type": "float"}
        properties["vector"] = {**vector, "index": False}
        if kind != "flat":
            links = {"type": kind, **LINKS}
            graph = {"index": True, "similarity": "max_inner_product", "index_options": links}
            properties["near"] = {**vector, **graph}
    return {
        "dynamic": "strict",
        "_meta": {"linker": {"format": FORMAT, "dim": dim, "vectors": kind if dim else "none"}},
        "_source": {"excludes": ["vector", "near"]},  # vectors are not kept in the document's JSON as well
        "properties": properties,
    }


def stored_vectors(vectors: Matrix, kind: str, first: int) -> dict[str, Matrix]:
    """Return the fields for vectors [n, dim] of rows `first` and on: as they are, and for a graph as `near` ones.

    Lucene links a row to nothing that is as near to one of its neighbours as to itself. Equal vectors (retweets, empty
    texts) would so be linked among themselves only, and a search that enters the graph at one finds nothing else of its
    segment. So the graph gets vectors that were moved by APART, each its own way; it proposes, `vector` scores.
    """
    if kind == "flat":
        return {"vector": vectors}
    noise = np.random.default_rng(first).standard_normal(vectors.shape, dtype=np.float32)
    return {"vector": vectors, "near": vectors + APART * noise / np.linalg.norm(noise, axis=1, keepdims=True)}


def meta_terms(metadata: Metadata) -> list[str]:
    """Return the terms under which a document's metadata can be filtered."""
    return [
        encodable(meta_term(name, one)) for name, value in metadata.items() for one in filter_values(value)
    ]


def meta_term(name: str, value: str) -> str:
    """Return one term for a metadata field and value; what is long or ambiguous enters by its checksum."""
    term = encodable(f"{name}\x1f{value}")
    if len(term) <= LONGEST_VALUE and term.count("\x1f") == 1:
        return term
    return xxhash.xxh3_128_hexdigest(json.dumps([name, value]).encode())
