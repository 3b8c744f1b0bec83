"""The layout of documents in Elasticsearch: the fields of an index, and metadata as terms."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xxhash

from indexes.interface import Matrix, Metadata, filter_values
from indexes.text.analysis import encodable

FORMAT = 2
LONGEST_VALUE = 200  # characters of a metadata term; longer terms are replaced by their checksum
# Twice the server's defaults, whose recall fell to .86 where many vectors are similar.
LINKS = {"m": 32, "ef_construction": 200}
APART = 1e-4  # the length of the noise added to a vector before it enters a graph


def mapping(dim: int, kind: str) -> dict[str, Any]:
    """Return the index mapping for vectors of dimension `dim`; 0 leaves vectors out.

    The vectors are normalised, so their inner product is the cosine; the similarity "cosine" would reject the zero
    vector of an empty text.
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
        "_source": {"excludes": ["vector", "near"]},  # vectors are not stored again in the JSON
        "properties": properties,
    }


def stored_vectors(vectors: Matrix, kind: str, first: int) -> dict[str, Matrix]:
    """Return the vector fields, float32 [n, dim] each, of the rows from `first` on: `vector`, and `near` for a graph.

    Lucene does not link a row to one that is as close to one of the row's neighbours as to the row itself. Equal
    vectors (retweets, empty texts) would therefore be linked only to each other, and a search that enters the graph
    at one of them would find nothing else in its segment. So the graph gets vectors with random noise of length
    APART: `near` generates candidates, `vector` scores them.
    """
    if kind == "flat":
        return {"vector": vectors}
    noise = np.random.default_rng(first).standard_normal(vectors.shape, dtype=np.float32)
    return {"vector": vectors, "near": vectors + APART * noise / np.linalg.norm(noise, axis=1, keepdims=True)}


def meta_terms(metadata: Metadata) -> list[str]:
    """Return the terms by which a document's metadata can be filtered."""
    return [
        encodable(meta_term(name, one)) for name, value in metadata.items() for one in filter_values(value)
    ]


def meta_term(name: str, value: str) -> str:
    """Return the term for a metadata field and value; a checksum replaces one that is too long or ambiguous."""
    term = encodable(f"{name}\x1f{value}")
    if len(term) <= LONGEST_VALUE and term.count("\x1f") == 1:
        return term
    return xxhash.xxh3_128_hexdigest(json.dumps([name, value]).encode())
