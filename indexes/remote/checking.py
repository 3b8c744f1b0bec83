"""Whether an index on a cluster is whole: by counts over all documents, and by a random sample read and found again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from indexes.address import Address
from indexes.elastic.mapping import meta_terms
from indexes.elastic.stored import vector_kind
from indexes.interface import DamagedError, Document
from indexes.remote import layout
from indexes.remote.collection import state_at, stored_manifest
from indexes.remote.store import RemoteStore, settings_of
from indexes.store.records import Manifest
from indexes.text.analysis import Analysis

SAMPLE = 1000  # documents
BATCH = 100  # documents that are looked up in one request
MOST_TERMS = 500  # of one document: a server limits the clauses of a query


class Check(NamedTuple):
    """What a check found: `damage`, one line each, harmless `notes`, and how many documents it counted and read."""

    damage: list[str]
    notes: list[str]
    documents: int
    sampled: int


def check(address: Address, sample: int = SAMPLE, seed: int | None = None) -> Check:
    """Check an index on a cluster; other writers may be at work.

    All documents must have an id, a stamp and, with an encoder, a vector. Of a random sample (by `seed`), each document
    must be readable, have its stamp as its version, and be found by each of its terms, those of its metadata included.
    Raises IndexesError where there is no index, BackendUnavailableError where the server does not answer.
    """
    state = state_at(address)
    store = RemoteStore(settings_of(address, state.shards, state.replicas), state.name)
    try:
        manifest = stored_manifest(address, state)
        health = store.health()
        missing, waiting = health["missing"], health["waiting"]
        damage = [f"{state.name}: {missing} of its {state.shards} shards are missing"] if missing else []
        notes = [f"{state.name}: {waiting} copies of shards are not there (yet)"] if waiting else []
        if not missing:
            damage += _uncounted(store, manifest)
            sources = store.sample(sample, random.randrange(2**31) if seed is None else seed)
            damage += _differences(store, manifest, sources)
            return Check(damage, notes, store.count(), len(sources))
        return Check(damage, notes, 0, 0)
    except DamagedError as e:
        return Check([str(e)], [], 0, 0)
    finally:
        store.close()


def _uncounted(store: RemoteStore, manifest: Manifest) -> Iterator[str]:
    dim, kind = vector_kind(manifest)
    fields = ["id", "stamp"] + ["vector"] * bool(dim) + ["near"] * (bool(dim) and kind != "flat")
    for field in fields:
        if lacking := store.count({"bool": {"must_not": [{"exists": {"field": field}}]}}):
            yield f"{store.name}: {lacking} documents have no {field}: build the index again"


def _differences(
    store: RemoteStore, manifest: Manifest, sources: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    analysis = Analysis(manifest.analysis)
    queries, documents = [], []
    for hit in sources:
        document = layout.document_of(hit["_source"], store.name)
        if hit["_id"] != layout.key_of(document.id) or hit["_version"] != hit["_source"].get("stamp"):
            yield f"{store.name}: document {document.id!r} has another id or stamp than its place"
            continue
        documents.append((document, int(hit["_version"])))
        queries.append(_found_by(document, hit["_id"], analysis))
    for start in range(0, len(queries), BATCH):
        found = store.matches(queries[start : start + BATCH])
        for (document, stamp), is_found in zip(documents[start:], found, strict=False):
            # One that another writer has changed meanwhile is no damage.
            if not is_found and store.versions([document.id]).get(document.id) == stamp:
                yield f"{store.name}: document {document.id!r} is not found by its own terms: build the index again"


def _found_by(document: Document, key: str, analysis: Analysis) -> dict[str, Any]:
    """Return a query that a document matches by its id and all its terms."""
    terms = sorted(set(analysis.terms(analysis.prepare(document.full_text))))[:MOST_TERMS]
    clauses: list[dict[str, Any]] = [{"ids": {"values": [key]}}]
    # A longer one is cut into several by the server's analysis.
    clauses += [{"term": {"terms": term}} for term in terms if len(term) <= 255]
    clauses += [{"term": {"meta": term}} for term in meta_terms(document.metadata)]
    clauses += [{"term": {"fields": field}} for field in layout.fields_of(document)]
    return {"bool": {"filter": clauses}}
