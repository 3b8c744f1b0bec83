"""One index on a cluster, without a directory: its documents by id, its manifest in the mapping, its alias.

The name is an alias of one generation, NAME-g000001 and so on. A document's `_id` is its id, and its version, the
`stamp`, is external: of two writes of one document the later version stays, in whatever order they arrive, and sending
one again changes nothing.
"""

from __future__ import annotations

import functools
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import xxhash

from indexes.address import Address
from indexes.elastic.bulk import Bulk, Operation
from indexes.elastic.client import ElasticSettings, not_the_product
from indexes.interface import IndexesError
from indexes.remote import layout
from indexes.remote.reads import RemoteReads
from indexes.store import manifest as manifests
from indexes.store.records import Manifest

KEPT_DELETES = "1h"  # how long a deletion's version is known, so that no older write undoes it
MASTER_WAIT = "3s"  # for the election of a master, which takes less
QUARANTINE, FILES = "-quarantine", "-files"  # how the names of the indexes beside it end


class State(NamedTuple):
    """A generation: its name, its manifest as it was stored, the next stamp of its build, shards and replicas."""

    name: str
    stored: str
    stamp: int
    shards: int
    replicas: int


def settings_of(address: Address, shards: int = 1, replicas: int = 0) -> ElasticSettings:
    """Return the settings of an index that the user has named. Raises IndexesError where they are invalid."""
    return ElasticSettings(
        address.urls, address.name, shards, replicas, stateless=True, server=address.server
    )


class RemoteStore(RemoteReads):
    """The index behind a name; `at` is the generation that is read and written, by default the alias's."""

    _extra_settings: Mapping[str, Any] = {"gc_deletes": KEPT_DELETES}

    def _mapping(self, dim: int, kind: str) -> dict[str, Any]:
        return layout.mapping(dim, kind, self.dialect.fields)

    def state(self, of: str = "", *, near: bool = False) -> State | None:
        """Return what is at the name now, or at the generation `of`; None where there is no index.

        With `near`, that is what the node that answers knows, with or without a master. Raises IndexesError where the
        index is not one of this package's without a directory, BackendUnavailableError.
        """
        name = of or self.settings.index
        with self.errors():
            client = self._near if near else self.client
            found = client.indices.get(
                index=name, ignore_unavailable=True, local=near, master_timeout=MASTER_WAIT
            ).body
        if not found:
            return None
        try:
            (real, index), *others = found.items()
            about, numbers = index["mappings"].get("_meta", {}).get("linker", {}), index["settings"]["index"]
            shape = int(numbers["number_of_shards"]), int(numbers["number_of_replicas"])
            if not others and "manifest" in about:
                return State(str(real), str(about["manifest"]), int(about.get("stamp", 0)), *shape)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise not_the_product(self.settings) from None
        raise IndexesError(
            f"{name!r} at {', '.join(self.settings.urls)} is not an index of linker that lives on the cluster: "
            "choose another name"
        )

    def led_state(self, seconds: float) -> State | None:
        """Return `state`, as a node with a master knows it, which has so many seconds to be elected.

        Raises as `state`, and NoMasterError.
        """

        def look() -> State | None:
            self.check_led()
            return self.state(near=True)

        self._near = self.client  # no search waits for this
        return self._asking.patiently(look, seconds)

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

    def health(self) -> dict[str, int]:
        """Return how many shards are `missing`, and how many more copies are `waiting` for a node."""
        with self.errors():
            found = self.client.cluster.health(index=self._target)
            shards = self.client.indices.stats(index=self._target, metric="docs")["_shards"]
        missing = self.settings.shards - int(found["active_primary_shards"])
        return {"missing": missing, "waiting": int(shards["total"]) - int(found["active_shards"]) - missing}

    def quarantine(self, lines: Sequence[bytes], *, once: bool = False) -> None:
        """Store unusable records, each a line of JSON, beside the index; with `once`, no line is stored again."""
        operations = []
        for line in lines:
            key = xxhash.xxh3_128_hexdigest(line) if once else secrets.token_hex(16)
            source = orjson.dumps({"record": line.decode(errors="replace")})
            operations.append(Operation(orjson.dumps({"index": {"_id": key}}), source))
        self.write_beside(QUARANTINE, operations)

    def write_beside(self, suffix: str, operations: Sequence[Operation]) -> None:
        """Write to an index beside this one, whose name ends so; it is made where it is missing."""
        index = f"{self.settings.index}{suffix}"
        with self.errors():
            if not self.client.indices.exists(index=index):
                mappings = {"dynamic": False, "properties": {}}
                self._patient.indices.create(
                    index=index, mappings=mappings, settings={"number_of_replicas": self.settings.replicas}
                )
        bulk = Bulk(functools.partial(self._send, index=index), self._bulk_settings)
        for operation in operations:
            bulk.put(operation)
        bulk.flush()
        bulk.close()
        with self.errors():
            self._patient.indices.refresh(index=index)

    def read_beside(self, suffix: str, keys: Sequence[str]) -> list[dict[str, Any]]:
        """Return what an index beside this one holds under the keys; nothing for what is missing."""
        with self.errors():
            docs = self._patient.mget(index=f"{self.settings.index}{suffix}", ids=keys)["docs"]
        return [doc.get("_source", {}) for doc in docs]

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

    def expunge(self) -> None:
        """Reclaim the space of deleted documents, which then no longer count in the statistics."""
        with self.errors():
            self.client.options(request_timeout=3600).indices.forcemerge(
                index=self._target, only_expunge_deletes=True
            )

    def remove_all(self) -> None:
        """Delete every generation, the quarantine and the files."""
        self.drop()
        with self.errors():
            for suffix in (QUARANTINE, FILES):
                index = f"{self.settings.index}{suffix}"
                self._patient.indices.delete(index=index, ignore_unavailable=True)


def _action(name: str, id_: str, stamp: int) -> bytes:
    target = {"_id": layout.key_of(id_), "version": stamp, "version_type": "external"}
    return orjson.dumps({name: target})


def generation(name: str) -> int:
    """Return the number in the name of a generation; 0 where there is none."""
    found = re.search(r"-g(\d{6})$", name)
    return int(found[1]) if found else 0
