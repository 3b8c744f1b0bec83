"""Check whether an index on a cluster is complete, by counting all documents and reading a sample.

Without a directory, searches must find every document of a random sample; otherwise, the index is compared with the
directory.
"""

import contextlib
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from indexes.address import Address
from indexes.cluster import mapping
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex
from indexes.cluster.sending import DirectSender, vector_kind
from indexes.cluster.states import state_at, stored_manifest
from indexes.interface import BackendUnavailableError, DamagedError, Document
from indexes.store.documents import DocumentStore, read_rows
from indexes.store.records import Manifest
from indexes.text.analysis import Analysis

SAMPLE = 1000  # number of documents in the sample
BATCH = 100  # documents looked up per request
COMPARED = 512  # documents compared at a time
# how many seconds missing shards may take to recover, and how often this is checked, in seconds
RECOVERY, PAUSE = 30.0, 1.0
MOST_TERMS = 500  # maximum number of a document's terms in a query, since servers limit the clauses


class CheckReport(NamedTuple):
    """The result of a check: `damage` and harmless `notes`, one line each; how many documents it counted and read."""

    damage: list[str]
    notes: list[str]
    documents: int
    sampled: int


def check(
    address: Address, sample: int = SAMPLE, seed: int | None = None, documents: int | None = None
) -> CheckReport:
    """Check an index on a cluster; other writers may be active.

    There must be exactly `documents` documents, unless it is None. All must have an id, a stamp and, with an encoder,
    a vector. Each document of a random sample (drawn with `seed`) must be readable, have its stamp as its version, and
    be found by each of its terms, including its metadata terms. Missing shards have RECOVERY seconds to come back, for
    example after the start of a node. Raises IndexesError if there is no index, BackendUnavailableError if the server
    does not answer, or keeps recovering.
    """
    state = state_at(address)
    settings = ElasticSettings.of(address, state.shards, state.replicas)
    with contextlib.closing(ClusterIndex(settings, state.name)) as index:
        try:
            return _report(index, stored_manifest(address, state), sample, seed, documents)
        except DamagedError as e:
            return CheckReport([str(e)], [], 0, 0)


def _report(
    index: ClusterIndex, manifest: Manifest, sample: int, seed: int | None, expected: int | None
) -> CheckReport:
    name, health = index.name, _await_shards(index)
    missing, waiting = health["missing"], health["waiting"]
    notes = [f"{name}: {waiting} copies of shards are not available (yet)"] if waiting else []
    if missing:
        return CheckReport(
            [f"{name}: {missing} of its {index.settings.shards} shards are missing"], notes, 0, 0
        )
    sources = index.sample(sample, random.randrange(2**31) if seed is None else seed)
    count, damage = index.count(), [*_check_fields(index, manifest), *_check_sample(index, manifest, sources)]
    if expected not in (None, count):
        damage.append(f"{name}: {count} documents instead of {expected}")
    return CheckReport(damage, notes, count, len(sources))


def _await_shards(index: ClusterIndex) -> dict[str, int]:
    """Return an index's health once no shard is missing, or after RECOVERY seconds. Raises BackendUnavailableError."""
    end, health = time.monotonic() + RECOVERY, index.health()
    while health["missing"] and time.monotonic() + PAUSE < end:
        time.sleep(PAUSE)
        health = index.health()
    if health["missing"] and health["recovering"]:
        raise BackendUnavailableError(
            f"{index.name} is recovering: {health['missing']} of its {index.settings.shards} shards are not available "
            "yet: verify it again in a few minutes"
        )
    return health


def _check_fields(index: ClusterIndex, manifest: Manifest) -> Iterator[str]:
    dim, kind = vector_kind(manifest)
    fields = ["id", "stamp"] + ["vector"] * bool(dim) + ["near"] * (bool(dim) and kind != "flat")
    for field in fields:
        if lacking := index.count({"bool": {"must_not": [{"exists": {"field": field}}]}}):
            yield f"{index.name}: the field {field} is missing in {lacking} of its documents: build the index again"


def _check_sample(
    index: ClusterIndex, manifest: Manifest, sources: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    analysis = Analysis(manifest.analysis)
    queries, documents = [], []
    for hit in sources:
        document = mapping.document_of(hit["_source"], index.name)
        if hit["_id"] != mapping.key_of(document.id) or hit["_version"] != hit["_source"].get("stamp"):
            yield f"{index.name}: document {document.id!r} is stored under another id or version"
            continue
        documents.append((document, int(hit["_version"])))
        queries.append(_query_for(document, hit["_id"], analysis))
    for start in range(0, len(queries), BATCH):
        matches = index.matches(queries[start : start + BATCH])
        for (document, stamp), is_match in zip(documents[start:], matches, strict=False):
            # A document changed by another writer meanwhile is not damage.
            if not is_match and index.versions([document.id]).get(document.id) == stamp:
                yield f"{index.name}: document {document.id!r} is not found by its own terms: build the index again"


def _query_for(document: Document, key: str, analysis: Analysis) -> dict[str, Any]:
    terms = sorted(set(analysis.terms(analysis.prepare(document.full_text))))[:MOST_TERMS]
    clauses: list[dict[str, Any]] = [{"ids": {"values": [key]}}]
    # The server's analysis splits a longer term into several.
    clauses += [{"term": {"terms": term}} for term in terms if len(term) <= 255]
    clauses += [{"term": {"meta": term}} for term in mapping.meta_terms(document.metadata)]
    clauses += [{"term": {"fields": field}} for field in mapping.fields_of(document)]
    return {"bool": {"filter": clauses}}


def compare(directory: Path, manifest: Manifest, sample: int = SAMPLE) -> CheckReport:
    """Compare the server with the directory: all counts, and the content of `sample` evenly spaced documents.

    Rows outside the commit are not damage: a writer is active or was interrupted, and searches skip them.
    Raises BackendUnavailableError if the server does not answer.
    """
    documents = DocumentStore(directory, manifest.segments)
    rows = read_rows(directory, manifest, documents)
    mask = rows.mask()
    live = np.arange(manifest.rows) if mask is None else np.flatnonzero(mask)
    sampled = live[np.linspace(0, len(live) - 1, min(sample, len(live)), dtype=np.int64)].tolist()
    with contextlib.closing(ClusterIndex(ElasticSettings.from_json(manifest.elastic))) as index:
        name, removed = index.settings.index, index.count_rows(rows.dead)
        count = index.count({"range": {"row": {"lt": manifest.rows}}}) - removed
        outdated = index.outdated()
        damage = [outdated] if outdated else []
        if count != manifest.documents:
            damage.append(f"{name}: {count} documents instead of {manifest.documents}")
        damage += _differences(index, documents, manifest, [] if outdated else sampled)
        extra = removed + index.count({"range": {"row": {"gte": manifest.rows}}})
    note = (
        f"{name}: {extra} rows that are not in the commit: searches skip them, the next change removes them"
    )
    return CheckReport(damage, [note] if extra else [], count, len(sampled))


def _differences(
    index: ClusterIndex, documents: DocumentStore, manifest: Manifest, sampled: Sequence[int]
) -> Iterator[str]:
    sender, name = DirectSender(index, manifest), index.settings.index
    for start in range(0, len(sampled), COMPARED):
        part = sampled[start : start + COMPARED]
        stored = index.fetch(part)
        for row in part:
            document = documents[row]
            expected = {"row": row, "id": document.id, "terms": " ".join(sender.terms(document))}
            if meta := mapping.meta_terms(document.metadata):
                expected["meta"] = meta
            if row not in stored:
                yield f"{name}: document {document.id!r} is missing"
            elif stored[row] != expected:
                yield f"{name}: document {document.id!r} differs from the directory's"
