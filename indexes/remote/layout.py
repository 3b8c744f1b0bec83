"""How a document lies on a cluster: the fields of the index, and what of them is read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
import xxhash

from indexes.elastic import mapping as elastic
from indexes.interface import DamagedError, Document, Matrix, filter_values
from indexes.store.document_checks import read_document
from indexes.text.analysis import encodable

LONGEST_ID = 500  # bytes of an `_id`; Elasticsearch allows 512
UNSTORED = (
    "vector",
    "near",
    "terms",
    "meta",
    "fields",
)  # what `_source` leaves out: it follows from the rest


def mapping(
    dim: int, kind: str, vectors: Callable[[int, str], Mapping[str, Any]] = elastic.dense_vectors
) -> dict[str, Any]:
    """Return the index mapping, whose `vectors` make the fields for vectors of dimension `dim`; 0 leaves them out.

    `document` is the whole document as a line of JSON, so that it is read back exactly as it was; `stamp` is its
    version, by whose order equal scores are sorted.
    """
    values = elastic.mapping(dim, kind, vectors)
    properties = values["properties"]
    del properties["row"]
    properties["stamp"] = {"type": "long"}
    properties["id"] = {"type": "keyword", "index": False}
    properties["fields"] = {"type": "keyword"}
    properties["document"] = {"type": "keyword", "index": False, "doc_values": False}
    return {**values, "_source": {"excludes": list(UNSTORED)}}


def key_of(id_: str) -> str:
    """Return the `_id` of a document: its id, or a checksum, which no id can be, where that is too long."""
    encoded = id_.encode()
    return id_ if len(encoded) <= LONGEST_ID else f"\x1f{xxhash.xxh3_128_hexdigest(encoded)}"


def source_of(document: Document, stamp: int, terms: str, vectors: Mapping[str, Matrix]) -> bytes:
    """Return a document as it is sent; `vectors` holds one vector, float32 [dim], for each vector field."""
    source: dict[str, Any] = {"stamp": stamp, "id": document.id, "terms": terms, **vectors}
    values = {
        "id": document.id,
        "text": document.text,
        "title": document.title,
        "metadata": document.metadata,
    }
    source["document"] = orjson.dumps(values, option=orjson.OPT_NON_STR_KEYS).decode()
    if meta := elastic.meta_terms(document.metadata):
        source |= {"meta": meta, "fields": fields_of(document)}
    return orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY)


def fields_of(document: Document) -> list[str]:
    """Return the metadata fields by which a document can be filtered, without those of very long names."""
    named = [name for name, value in document.metadata.items() if filter_values(value)]
    return sorted({encodable(name) for name in named if len(name) <= elastic.LONGEST_VALUE})


def document_of(source: Mapping[str, Any], index: str) -> Document:
    """Return the document in the stored fields. Raises DamagedError where they do not hold one."""
    id_, line = source.get("id"), source.get("document")
    if not isinstance(id_, str) or not isinstance(line, str):
        raise DamagedError(f"{index} holds a document that linker did not write: build the index again")
    return read_document(line.encode(errors="surrogatepass"), id_, index)
