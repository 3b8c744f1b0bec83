"""How documents are stored on a server: the fields of an index, writing and reading, and metadata as terms."""

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import xxhash

from indexes.cluster.bulk import Operation
from indexes.comparing import date_limit, number_of, period_of
from indexes.filters import has_order
from indexes.interface import Condition, DamagedError, Document, IndexesError, Matrix, Metadata, filter_values
from indexes.store.document_checks import read_document
from indexes.text.analysis import encodable

Further = Mapping[str, Any]  # values of further fields on the server: vectors, terms of BM25F's fields

FORMAT = 4
EARLIER = (
    "was made by an earlier version: fill it again with `linker index rebuild`, or, without a directory, drop it and "
    "build it again"
)
LONGEST_VALUE = 200  # maximum length of a metadata term in characters; longer ones become checksums
# Twice the server's defaults, whose recall fell to 0.86 with many similar vectors.
LINKS = {"m": 32, "ef_construction": 200}
LONGEST_ID = 500  # maximum size in bytes of an `_id`; Elasticsearch allows 512
NOTHING = "."  # a term that the analysis never produces
APART = 1e-4  # the length of the noise added to a vector before it enters a graph


def dense_vectors(dim: int, kind: str) -> dict[str, Any]:
    """Return Elasticsearch's fields for vectors of dimension `dim`, or none if it is 0.

    The vectors are normalised, so their inner product is the cosine; the similarity "cosine" would reject the zero
    vector of an empty text.
    """
    if not dim:
        return {}
    vector = {"type": "dense_vector", "dims": dim, "element_type": "float"}
    if kind == "flat":
        return {"vector": {**vector, "index": False}}
    graph = {"index": True, "similarity": "max_inner_product", "index_options": {"type": kind, **LINKS}}
    return {"vector": {**vector, "index": False}, "near": {**vector, **graph}}


def mapping(
    dim: int,
    kind: str,
    vectors: Callable[[int, str], Mapping[str, Any]] = dense_vectors,
    alone: bool = False,
    fields: int = 0,
) -> dict[str, Any]:
    """Return the index mapping; `vectors` returns its fields for vectors of dimension `dim`, or none if it is 0.

    `terms` are stored, and `length` is their number, so that the top documents can be rescored. Next to a directory,
    a document has the directory's `row`. If the index is `alone` (has no directory), `document` is the whole document
    as a line of JSON, so that it is read back unchanged, and `stamp` is its version, by which ties are sorted.
    `fields`: the number of fields of BM25F, which have terms and lengths of their own.
    """
    unstored = ["vector", "near", "terms", "length"]  # not stored again in the JSON
    properties: dict[str, Any] = {
        "terms": {"type": "text", "analyzer": "whitespace", "store": True},
        "length": {"type": "integer", "index": False},
        "meta": {"type": "keyword"},
        **vectors(dim, kind),
    }
    for number in range(fields):
        name, length = field_name(number), length_name(number)
        ranked = {"analyzer": "whitespace", "store": True, "similarity": name, "index_options": "freqs"}
        properties |= {name: {"type": "text", **ranked}, length: {"type": "integer", "index": False}}
        unstored += [name, length]
    if alone:
        unstored += ["meta", "fields"]  # derived from the document
        properties["stamp"] = {"type": "long"}
        properties["id"] = {"type": "keyword", "index": False}
        properties["fields"] = {"type": "keyword"}
        properties["document"] = {"type": "keyword", "index": False, "doc_values": False}
    else:
        properties["row"] = {"type": "long"}
        properties["id"] = {"type": "keyword", "index": False, "doc_values": False}
    return {
        "dynamic": "strict",
        "_meta": {"linker": {"format": FORMAT, "dim": dim, "vectors": kind if dim else "none"}},
        "_source": {"excludes": unstored},
        "properties": properties,
    }


def index_row(document: Document, row: int, terms: Sequence[str], further: Further) -> Operation:
    """Return the idempotent operation that writes a row's document in an index next to a directory.

    `further` holds one vector, float32 [dim], for each vector field, and the result of `field_terms`.
    """
    source = {"row": row, **_common(document, terms, further)}
    return Operation(_action("index", _id=str(row)), _json(source))


def index_document(document: Document, stamp: int, terms: Sequence[str], further: Further) -> Operation:
    """Return the operation, like `index_row`, that writes to an index without a directory; the later `stamp` wins."""
    source = {"stamp": stamp, **_common(document, terms, further)}
    values = {
        "id": document.id,
        "text": document.text,
        "title": document.title,
        "metadata": document.metadata,
    }
    source["document"] = orjson.dumps(values, option=orjson.OPT_NON_STR_KEYS).decode()
    if "meta" in source:
        source["fields"] = fields_of(document)
    return Operation(_versioned("index", document.id, stamp), _json(source))


def _common(document: Document, terms: Sequence[str], further: Further) -> dict[str, Any]:
    source: dict[str, Any] = {"id": document.id, "terms": " ".join(terms), "length": len(terms), **further}
    if meta := meta_terms(document.metadata):
        source["meta"] = meta
    return source


def delete_row(row: int) -> Operation:
    """Return the operation that deletes a row's document, if it exists."""
    return Operation(_action("delete", _id=str(row)))


def delete_document(id_: str, stamp: int) -> Operation:
    """Return the operation that deletes from an index without a directory, unless the document's stamp is later."""
    return Operation(_versioned("delete", id_, stamp))


def _versioned(name: str, id_: str, stamp: int) -> bytes:
    return _action(name, _id=key_of(id_), version=stamp, version_type="external")


def _action(name: str, **target: Any) -> bytes:
    return orjson.dumps({name: target})


def _json(source: Mapping[str, Any]) -> bytes:
    return orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY)


def key_of(id_: str) -> str:
    """Return the `_id` of a document: its id or, if that is too long, a checksum, which cannot equal any id."""
    encoded = id_.encode()
    return id_ if len(encoded) <= LONGEST_ID else f"\x1f{xxhash.xxh3_128_hexdigest(encoded)}"


def fields_of(document: Document) -> list[str]:
    """Return the metadata fields by which a document can be filtered, without those with very long names."""
    named = [name for name, value in document.metadata.items() if filter_values(value)]
    return sorted({encodable(name) for name in named if len(name) <= LONGEST_VALUE})


def document_of(source: Mapping[str, Any], index: str) -> Document:
    """Return the document in the stored fields. Raises DamagedError if they hold none."""
    id_, line = source.get("id"), source.get("document")
    if not isinstance(id_, str) or not isinstance(line, str):
        raise DamagedError(f"{index} holds a document that linker did not write: build the index again")
    return read_document(line.encode(errors="surrogatepass"), id_, index)


def field_name(number: int) -> str:
    """Return the name of the server's field for the terms of a field of BM25F."""
    return f"f{number}"


def length_name(number: int) -> str:
    """Return the name of the server's field that stores how many terms a BM25F field has."""
    return f"length{number}"


def field_terms(parts: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the server's fields for the terms of each field of BM25F.

    An empty field has the term NOTHING: Lucene's idf counts only documents that have the field, and if all do, its
    score is an upper bound.
    """
    terms = {field_name(number): " ".join(part) or NOTHING for number, part in enumerate(parts)}
    return terms | {length_name(number): len(part) for number, part in enumerate(parts)}


def parts_of(found: Mapping[str, Any], name: str) -> list[str]:
    """Return the stored terms of a field of BM25F."""
    terms = terms_of(found, name)
    return [] if terms == NOTHING else terms.split(" ")


def terms_of(found: Mapping[str, Any], name: str = "terms") -> str:
    """Return the stored terms of a document. Raises IndexesError if an earlier version stored none."""
    try:
        return str(found["fields"][name][0])
    except KeyError:
        raise IndexesError(f"the index on the cluster {EARLIER}") from None


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
    """Return the terms by which a document's metadata can be filtered, including by ranges."""
    terms = []
    for name, value in metadata.items():
        for one in filter_values(value):
            terms.append(encodable(meta_term(name, one)))
            if has_order(name):
                terms.extend(f"{name}\x1f{code}" for code in _codes(one))
    return terms


def meta_term(name: str, value: str) -> str:
    """Return the term for a metadata field and value; a checksum replaces terms that are too long or ambiguous."""
    term = encodable(f"{name}\x1f{value}")
    if len(term) <= LONGEST_VALUE and term.count("\x1f") == 1:
        return term
    return xxhash.xxh3_128_hexdigest(json.dumps([name, value]).encode())


def _codes(value: str) -> Iterator[str]:
    """Yield the codes of a number and of a date, which sort as strings in the same order.

    A date's code shows whether it is also a number, because two numbers are never compared as dates.
    """
    number, period = number_of(value), period_of(value)
    if number is not None:
        yield _number_code(number)
    if period is not None:
        yield _date_code(period.begin, number is not None)


def _number_code(number: float) -> str:
    (bits,) = struct.unpack(">Q", struct.pack(">d", number))
    # A negative float has its first bit set, and its other bits increase with its distance from 0.
    return f"n\x1f{bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63:016x}"


def _date_code(instant: int, numeric: bool) -> str:
    return f"{'y' if numeric else 'd'}\x1f{instant + (1 << 62):016x}"


def range_clause(condition: Condition) -> dict[str, Any]:
    """Return the clause for a range, which matches the same documents as `Condition.accepts`."""
    bound, name = condition.values[0], condition.field
    number, period = number_of(bound), period_of(bound)
    clauses = []
    if number is not None:
        clauses.append(_beyond(name, condition.sign, _number_code(number)))
    if period is not None:
        sign = ">=" if condition.sign in (">", ">=") else "<"
        limit = date_limit(condition.sign, period)
        # If the bound is also a number (a year), values that are numbers have been compared with it as numbers.
        kinds = (False,) if number is not None else (False, True)
        clauses.extend(_beyond(name, sign, _date_code(limit, numeric)) for numeric in kinds)
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def _beyond(name: str, sign: str, code: str) -> dict[str, Any]:
    kind, signs = code[0], {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
    other = {"gt": f"{name}\x1f{kind}\x1f"} if sign in ("<", "<=") else {"lt": f"{name}\x1f{kind}\x1fg"}
    return {"range": {"meta": {signs[sign]: f"{name}\x1f{code}", **other}}}
