"""One index on a cluster, without a directory: its documents by id, its manifest in the mapping, its alias.

The name is an alias of one generation, NAME-g000001 and so on. A document's `_id` is its id, and its version, the
`stamp`, is external: of two writes of one document the later version stays, in whatever order they arrive, and sending
one again changes nothing.
"""

from __future__ import annotations

import contextlib
import functools
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import xxhash

from indexes.address import Address
from indexes.elastic.bulk import Bulk, Operation
from indexes.elastic.client import ElasticSettings
from indexes.elastic.mapping import LONGEST_VALUE
from indexes.elastic.server_index import ElasticStore
from indexes.interface import BackendUnavailableError, IndexesError, Matrix
from indexes.remote import layout
from indexes.store import manifest as manifests
from indexes.store.records import Manifest
from indexes.text.analysis import encodable

BATCH = 512  # documents read in one request
PAGE = 5000  # ids read in one request
SCANNED = "5m"  # how long the server keeps a point in time between two pages
COUNTED = 5.0  # seconds for which a count is good enough to choose between exact and approximate search
KEPT_DELETES = "1h"  # how long a deletion's version is known, so that no older write undoes it
QUARANTINE = "-quarantine"
# The server hands out the same array for each document.
VECTOR = "def out = []; for (float x : doc['vector'].vectorValue) out.add(x); return out"


class State(NamedTuple):
    """A generation: its name, its manifest as it was stored, the next stamp of its build, shards and replicas."""

    name: str
    stored: str
    stamp: int
    shards: int
    replicas: int


def settings_of(address: Address, shards: int = 1, replicas: int = 0) -> ElasticSettings:
    """Return the settings of an index that the user has named. Raises IndexesError where they are invalid."""
    return ElasticSettings(address.urls, address.name, shards, replicas, stateless=True)


class RemoteStore(ElasticStore):
    """The index behind a name; `at` is the generation that is read and written, by default the alias's."""

    _extra_settings: Mapping[str, Any] = {"gc_deletes": KEPT_DELETES}

    def __init__(self, settings: ElasticSettings, at: str = "", timeout: float | None = None) -> None:
        """Create the client; nothing is sent. Raises what `ElasticStore` raises."""
        super().__init__(settings, timeout)
        self._target = at or settings.index
        self._counted = (0.0, 0)

    def _mapping(self, dim: int, kind: str) -> dict[str, Any]:
        return layout.mapping(dim, kind)

    @property
    def name(self) -> str:
        """The generation that is read and written, or the alias."""
        return self._target

    def state(self, of: str = "") -> State | None:
        """Return what is at the name now, or at the generation `of`; None where there is no index.

        Raises IndexesError where the index is not one of this package's without a directory.
        """
        name = of or self.settings.index
        with self.errors():
            found = self.client.indices.get(index=name, ignore_unavailable=True).body
        if not found:
            return None
        try:
            (real, index), *others = found.items()
            about, numbers = index["mappings"].get("_meta", {}).get("linker", {}), index["settings"]["index"]
            shape = int(numbers["number_of_shards"]), int(numbers["number_of_replicas"])
            if not others and "manifest" in about:
                return State(str(real), str(about["manifest"]), int(about.get("stamp", 0)), *shape)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise BackendUnavailableError(
                f"what answers for {name} at {', '.join(self.settings.urls)} is no Elasticsearch"
            ) from None
        raise IndexesError(
            f"{name!r} at {', '.join(self.settings.urls)} is not an index of linker that lives on the cluster: "
            "choose another name"
        )

    def unfinished(self) -> State | None:
        """Return the generation of a build that has not ended, if there is one."""
        return None if self.exists() else self.state(f"{self.settings.index}-g000001")

    def start(self, manifest: Manifest, dim: int, kind: str, stamp: int) -> None:
        """Create the first generation, which has no alias yet. Raises IndexesError where there is one."""
        name = f"{self.settings.index}-g000001"
        self._create(name, dim, kind, manifest.bm25, {})
        self._target = name
        self.describe(manifest, stamp)

    def describe(self, manifest: Manifest, stamp: int = 0) -> None:
        """Store the manifest, and the next stamp of a build, in the generation."""
        with self.errors():
            indices = self.client.indices.get_mapping(index=self._target).body
            about = next(iter(indices.values()))["mappings"]["_meta"]["linker"]
            about = {**about, "manifest": manifests.dump(manifest).decode(), "stamp": stamp}
            self._patient.indices.put_mapping(index=self._target, meta={"linker": about})

    def put_document(self, id_: str, stamp: int, source: bytes) -> None:
        """Queue a document; it replaces the one of the same id unless that has a later stamp."""
        self.bulk.put(Operation(_action("index", id_, stamp), source))

    def delete_document(self, id_: str, stamp: int) -> None:
        """Queue the deletion of a document, unless it has a later stamp then."""
        self.bulk.put(Operation(_action("delete", id_, stamp)))

    def versions(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the stamp of each of `ids` that there is, as last written, visible or not."""
        found: dict[str, int] = {}
        for docs, part in self._read(ids, source=False):
            found |= {id_: doc["_version"] for id_, doc in zip(part, docs, strict=True) if doc.get("found")}
        return found

    def sources(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the stored fields of each of `ids` that there is, as last written."""
        found: dict[str, dict[str, Any]] = {}
        for docs, part in self._read(ids, source=True):
            found |= {id_: doc["_source"] for id_, doc in zip(part, docs, strict=True) if doc.get("found")}
        return found

    def _read(
        self, ids: Sequence[str], *, source: bool
    ) -> Iterator[tuple[list[dict[str, Any]], Sequence[str]]]:
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            with self.errors():
                keys = [layout.key_of(id_) for id_ in part]
                answer = self.client.mget(index=self._target, ids=keys, source=source)
            yield answer["docs"], part

    def about(self) -> int:
        """Return the number of visible documents, as it was a few seconds ago."""
        at, count = self._counted
        if time.monotonic() - at > COUNTED:
            count = self.count()
            self._counted = (time.monotonic(), count)
        return count

    def has_field(self, field: str) -> bool:
        """Return whether a visible document can be filtered by this metadata field. Raises BackendUnavailableError."""
        name = encodable(field)
        return len(name) > LONGEST_VALUE or self.count({"term": {"fields": name}}) > 0

    def fields(self) -> tuple[str, ...]:
        """Return the metadata fields of the visible documents, sorted."""
        with self.errors():
            answer = self.client.search(
                index=self._target, size=0, aggs={"fields": {"terms": {"field": "fields", "size": 10_000}}}
            )
        return tuple(sorted(bucket["key"] for bucket in answer["aggregations"]["fields"]["buckets"]))

    def scan(
        self, clauses: Sequence[Mapping[str, Any]] = (), *, source: bool = False
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the id of each visible document that fits all `clauses`, and with `source` its stored fields.

        They come in the order of their stamps, as of one point in time.
        """
        with self.errors():
            pit: str = self.client.open_point_in_time(index=self._target, keep_alive=SCANNED)["id"]
        after: list[Any] | None = None
        try:
            while True:
                with self.errors():
                    answer = self._patient.search(
                        pit={"id": pit, "keep_alive": SCANNED}, query={"bool": {"filter": list(clauses)}},
                        size=BATCH if source else PAGE, search_after=after, source=source,
                        sort=[{"stamp": "asc"}, {"id": "asc"}], track_total_hits=False,
                        allow_partial_search_results=False,
                    )  # fmt: skip
                for hit in answer["hits"]["hits"]:
                    after = hit["sort"]
                    yield after[1], hit.get("_source", {})
                if not answer["hits"]["hits"]:
                    return
        finally:
            with contextlib.suppress(IndexesError), self.errors():  # it ends by itself, too
                self.client.close_point_in_time(id=pit)

    def vectors(self, ids: Sequence[str], dim: int) -> Matrix:
        """Return the vectors of the documents with these ids, float32 [n, dim]; zeros where there is none."""
        out = np.zeros((len(ids), dim), dtype=np.float32)
        for start in range(0, len(ids), BATCH):
            keys = {layout.key_of(id_): n for n, id_ in enumerate(ids[start : start + BATCH], start)}
            with self.errors():
                answer = self._patient.search(
                    index=self._target, query={"ids": {"values": list(keys)}}, size=len(keys), source=False,
                    script_fields={"v": {"script": VECTOR}}, track_total_hits=False,
                    allow_partial_search_results=False,
                )  # fmt: skip
            for hit in answer["hits"]["hits"]:
                out[keys[hit["_id"]]] = np.ravel(hit["fields"]["v"])
        return out

    def health(self) -> dict[str, int]:
        """Return how many shards are `missing`, and how many more copies are `waiting` for a node."""
        with self.errors():
            found = self.client.cluster.health(index=self._target)
            shards = self.client.indices.stats(index=self._target, metric="docs")["_shards"]
        missing = self.settings.shards - int(found["active_primary_shards"])
        return {"missing": missing, "waiting": int(shards["total"]) - int(found["active_shards"]) - missing}

    def sample(self, size: int, seed: int) -> list[dict[str, Any]]:
        """Return random documents, each with its `_id`, `_version` and `_source`; the same `seed` draws the same."""
        query = {"function_score": {"random_score": {"seed": seed, "field": "stamp"}}}
        with self.errors():
            answer = self._patient.search(
                index=self._target, query=query, size=min(size, 10_000), version=True,
                track_total_hits=False, allow_partial_search_results=False,
            )  # fmt: skip
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

    def matches(self, queries: Sequence[Mapping[str, Any]]) -> list[bool]:
        """Return, for each query, whether a visible document matches it."""
        bodies = [{"query": query, "size": 1, "sort": ["stamp"]} for query in queries]
        return [bool(hits) for hits in self.msearch(bodies)]

    def quarantine(self, lines: Sequence[bytes], *, once: bool = False) -> None:
        """Store unusable records, each a line of JSON, beside the index; with `once`, no line is stored again."""
        index = f"{self.settings.index}{QUARANTINE}"
        with self.errors():
            if not self.client.indices.exists(index=index):
                mappings = {"dynamic": False, "properties": {}}
                self._patient.indices.create(
                    index=index, mappings=mappings, settings={"number_of_replicas": self.settings.replicas}
                )
        bulk = Bulk(functools.partial(self._send, index=index), self._bulk_settings)
        for line in lines:
            key = xxhash.xxh3_128_hexdigest(line) if once else secrets.token_hex(16)
            source = orjson.dumps({"record": line.decode(errors="replace")})
            bulk.put(Operation(orjson.dumps({"index": {"_id": key}}), source))
        bulk.flush()
        bulk.close()
        with self.errors():
            self._patient.indices.refresh(index=index)

    def quarantined(self) -> int:
        """Return the number of unusable records."""
        with self.errors():
            index = f"{self.settings.index}{QUARANTINE}"
            return int(self.client.count(index=index, ignore_unavailable=True)["count"])

    def bytes(self) -> int:
        """Return the bytes that the index takes on the disks of the cluster, copies included."""
        with self.errors():
            stats = self.client.indices.stats(index=self._target, metric="store")
        return int(stats["_all"]["total"]["store"]["size_in_bytes"])

    def refresh(self) -> None:
        """Make what is written visible."""
        with self.errors():
            self._patient.indices.refresh(index=self._target)

    def expunge(self) -> None:
        """Reclaim the space of deleted documents, which then no longer count in the statistics."""
        with self.errors():
            self.client.options(request_timeout=3600).indices.forcemerge(
                index=self._target, only_expunge_deletes=True
            )

    def remove_all(self) -> None:
        """Delete every generation and the quarantine."""
        self.drop()
        with self.errors():
            index = f"{self.settings.index}{QUARANTINE}"
            self._patient.indices.delete(index=index, ignore_unavailable=True)


def _action(name: str, id_: str, stamp: int) -> bytes:
    target = {"_id": layout.key_of(id_), "version": stamp, "version_type": "external"}
    return orjson.dumps({name: target})


def generation(name: str) -> int:
    """Return the number in the name of a generation; 0 where there is none."""
    found = re.search(r"-g(\d{6})$", name)
    return int(found[1]) if found else 0
