"""Differences between Elasticsearch and OpenSearch: the client, the vector fields, and the vector queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from indexes.cluster import client, opensearch
from indexes.cluster.client import ElasticSettings
from indexes.cluster.mapping import LINKS, dense_vectors
from indexes.interface import ScoreArray

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

Values = Mapping[str, Any]
# The script copies the vector, since the server reuses the same array for each document.
READ = "def out = []; for (float x : doc['vector'].{}) out.add(x); return out"
DOT = "Math.max(0.0, dotProduct(params.q, 'vector') + 1.0)"  # a score must not be negative


@dataclass(frozen=True)
class Dialect:
    """The protocol details of one server.

    `fields` and `settings` return those of an index, given the dimension and the kind of its vectors. `score` returns
    the script that scores documents by their `vector`, and `cosines` converts its scores, float32 [n, k]; `near`
    returns the clause for a number of filtered candidates from each shard's graph; `read` is the script that returns a
    vector.
    """

    connect: Callable[[ElasticSettings, float | None], Elasticsearch]
    errors: Callable[[ElasticSettings], AbstractContextManager[None]]
    timed_out: Callable[[], type[Exception]]
    fields: Callable[[int, str], Values]
    settings: Callable[[int, str], Values]
    score: Callable[[list[float]], Values]
    cosines: Callable[[ScoreArray], ScoreArray]
    near: Callable[[list[float], int, Sequence[Values]], Values]
    read: str


def _elastic_near(vector: list[float], breadth: int, clauses: Sequence[Values]) -> Values:
    asked = {"field": "near", "query_vector": vector, "k": breadth, "num_candidates": breadth}
    return {"knn": {**asked, "filter": clauses}}


ELASTIC = Dialect(
    connect=client.connect,
    errors=client.elastic_errors,
    timed_out=client.timed_out,
    fields=dense_vectors,
    settings=lambda dim, kind: {},
    score=lambda q: {"source": DOT, "params": {"q": q}},
    cosines=lambda scores: scores - 1,
    near=_elastic_near,
    read=READ.format("vectorValue"),
)


def _connect(settings: ElasticSettings, timeout: float | None) -> Elasticsearch:
    # Our client for OpenSearch has those calls of Elasticsearch's client that this package uses.
    return cast("Elasticsearch", opensearch.connect(settings, timeout))


def _knn_vectors(dim: int, kind: str) -> Values:
    if not dim:
        return {}
    vector = {"type": "knn_vector", "dimension": dim}
    if kind == "flat":
        return {"vector": vector}
    parameters = {"m": LINKS["m"], "ef_construction": LINKS["ef_construction"]}
    graph = {"name": "hnsw", "engine": "lucene", "space_type": "innerproduct", "parameters": parameters}
    return {"vector": vector, "near": {**vector, "method": graph}}


def _knn_settings(dim: int, kind: str) -> Values:
    if not dim or kind == "flat":
        return {}  # the plugin then only stores the vectors
    # Number of vectors from which a graph is built for the field `vector`; −1: never.
    return {"knn": True, "knn.advanced.approximate_threshold": -1}


def _knn_score(vector: list[float]) -> Values:
    asked = {"field": "vector", "query_value": vector, "space_type": "innerproduct"}
    return {"lang": "knn", "source": "knn_score", "params": asked}


def _knn_cosines(scores: ScoreArray) -> ScoreArray:
    """Return the inner products x for the plugin's scores, which are 1 + x, or 1 / (1 − x) if x is negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines: ScoreArray = np.where(scores >= 1, scores - 1, 1 - 1 / scores).astype(np.float32)
    return np.where(np.isneginf(scores), scores, cosines)


def _knn_near(vector: list[float], breadth: int, clauses: Sequence[Values]) -> Values:
    asked: dict[str, Any] = {"vector": vector, "k": breadth}
    return {"knn": {"near": asked | ({"filter": {"bool": {"filter": clauses}}} if clauses else {})}}


OPENSEARCH = Dialect(
    connect=_connect,
    errors=opensearch.errors,
    timed_out=opensearch.timed_out,
    fields=_knn_vectors,
    settings=_knn_settings,
    score=_knn_score,
    cosines=_knn_cosines,
    near=_knn_near,
    read=READ.format("value"),
)
DIALECTS = {"elastic": ELASTIC, "opensearch": OPENSEARCH}
