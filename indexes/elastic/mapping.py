"""The layout of documents on a server: the fields of an index, and metadata as terms."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import xxhash

from indexes.comparing import date_limit, number_of, period_of
from indexes.filters import has_order
from indexes.interface import Condition, Matrix, Metadata, filter_values
from indexes.text.analysis import encodable

FORMAT = 3
WITH_NOISE = 2  # the first format whose graphs tell equal vectors apart
WITH_ORDER = 3  # the first format whose numbers and dates can be compared
LONGEST_VALUE = 200  # characters of a metadata term; longer terms are replaced by their checksum
# Twice the server's defaults, whose recall fell to .86 where many vectors are similar.
LINKS = {"m": 32, "ef_construction": 200}
APART = 1e-4  # the length of the noise added to a vector before it enters a graph


def dense_vectors(dim: int, kind: str) -> dict[str, Any]:
    """Return Elasticsearch's fields for vectors of dimension `dim`; 0 leaves them out.

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
    dim: int, kind: str, vectors: Callable[[int, str], Mapping[str, Any]] = dense_vectors
) -> dict[str, Any]:
    """Return the index mapping, whose `vectors` make the fields for vectors of dimension `dim`; 0 leaves them out."""
    properties: dict[str, Any] = {
        "row": {"type": "long"},
        "id": {"type": "keyword", "index": False, "doc_values": False},
        "terms": {"type": "text", "analyzer": "whitespace"},
        "meta": {"type": "keyword"},
        **vectors(dim, kind),
    }
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


def meta_terms(metadata: Metadata, order: bool = True) -> list[str]:
    """Return the terms by which a document's metadata can be filtered; with `order`, also by ranges."""
    terms = []
    for name, value in metadata.items():
        for one in filter_values(value):
            terms.append(encodable(meta_term(name, one)))
            if order and has_order(name):
                terms.extend(f"{name}\x1f{code}" for code in _codes(one))
    return terms


def meta_term(name: str, value: str) -> str:
    """Return the term for a metadata field and value; a checksum replaces one that is too long or ambiguous."""
    term = encodable(f"{name}\x1f{value}")
    if len(term) <= LONGEST_VALUE and term.count("\x1f") == 1:
        return term
    return xxhash.xxh3_128_hexdigest(json.dumps([name, value]).encode())


def _codes(value: str) -> Iterator[str]:
    """Yield the codes of a number and of a date, whose order as strings is theirs.

    A date's code tells whether it is a number too, because two numbers are never compared as dates.
    """
    number, period = number_of(value), period_of(value)
    if number is not None:
        yield _number_code(number)
    if period is not None:
        yield _date_code(period.begin, number is not None)


def _number_code(number: float) -> str:
    (bits,) = struct.unpack(">Q", struct.pack(">d", number))
    # A negative float has its first bit set, and the others grow with its distance from 0.
    return f"n\x1f{bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63:016x}"


def _date_code(instant: int, numeric: bool) -> str:
    return f"{'y' if numeric else 'd'}\x1f{instant + (1 << 62):016x}"


def range_clause(condition: Condition) -> dict[str, Any]:
    """Return the clause for a range, which matches the documents that `Condition.accepts` does."""
    bound, name = condition.values[0], condition.field
    number, period = number_of(bound), period_of(bound)
    clauses = []
    if number is not None:
        clauses.append(_beyond(name, condition.sign, _number_code(number)))
    if period is not None:
        sign = ">=" if condition.sign in (">", ">=") else "<"
        limit = date_limit(condition.sign, period)
        # Where both are numbers, they have been compared as such.
        kinds = (False,) if number is not None else (False, True)
        clauses.extend(_beyond(name, sign, _date_code(limit, numeric)) for numeric in kinds)
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def _beyond(name: str, sign: str, code: str) -> dict[str, Any]:
    """Return the clause for the terms of a field on one side of a code, within the codes of its kind."""
    kind, signs = code[0], {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
    other = {"gt": f"{name}\x1f{kind}\x1f"} if sign in ("<", "<=") else {"lt": f"{name}\x1f{kind}\x1fg"}
    return {"range": {"meta": {signs[sign]: f"{name}\x1f{code}", **other}}}
