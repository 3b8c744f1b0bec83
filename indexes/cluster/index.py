"""The life cycle of an index on a cluster: created behind an alias, described, rebuilt, dropped.

Its name is an alias of one generation, NAME-g000001 and so on. Next to a directory, a document's `_id` is its row, so
that writing it twice changes nothing: lost responses, resumed builds and retries are harmless, and readers skip rows
that they do not know. Without a directory, the manifest is in the mapping, the `_id` is the document's id, and
its version, the `stamp`, is external: of two writes of a document the later version wins, in whatever order they
arrive.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from indexes.cluster.bulk import BulkSettings
from indexes.cluster.client import ElasticSettings, not_the_product
from indexes.cluster.connection import of_rows
from indexes.cluster.mapping import EARLIER, FORMAT, field_name, mapping
from indexes.cluster.reads import IndexReads
from indexes.interface import BackendUnavailableError, IndexesError, RowArray
from indexes.kinds import SERVER_TYPES
from indexes.store import manifest as manifests
from indexes.store.records import Manifest
from indexes.text.field_scoring import b_of
from indexes.text.parameters import Bm25Parameters

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,150}(\.\d+)?")
DEFAULT = Bm25Parameters()
KEPT_DELETES = "1h"  # how long a deletion's version is kept, so that no older write undoes it
MASTER_WAIT = "3s"  # maximum wait for the election of a master, which usually is faster
# suffixes of the auxiliary indexes of an index without a directory
QUARANTINE, FILES = "-quarantine", "-files"


class State(NamedTuple):
    """A generation: its name, stored manifest, the next stamp of its build, its shards, replicas and format."""

    name: str
    stored: str
    stamp: int
    shards: int
    replicas: int
    format: int = FORMAT


def new_name(stem: str) -> str:
    """Return a name for an index: a readable stem plus a random suffix, so that no two directories share a name."""
    readable = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:60] or "linker"
    return f"{readable}-{secrets.token_hex(5)}"


def check_name(name: str) -> str:
    """Return `name` if it can name an index in Elasticsearch. Raises IndexesError otherwise."""
    if not NAME.fullmatch(name):
        raise IndexesError(f"{name!r} is not a valid index name: use lower-case letters, digits, '-' and '_'")
    if generation(name):
        raise IndexesError(f"{name!r} is a generation of an index: leave out {name[-8:]!r}")
    return name


class ClusterIndex(IndexReads):
    """An index with or without a directory, depending on its settings."""

    def __init__(
        self,
        settings: ElasticSettings,
        at: str = "",
        timeout: float | None = None,
        bulk: BulkSettings | None = None,
    ) -> None:
        """See `Connection`. Raises IndexesError if the name is invalid."""
        check_name(settings.index)
        super().__init__(settings, at, timeout, bulk)

    def create(self, dim: int = 0, kind: str = "hnsw", bm25: Bm25Parameters = DEFAULT) -> None:
        """Create the first generation, with its alias and BM25's k1 and b. Raises IndexesError if the name is taken."""
        with self.errors():
            taken = self.client.indices.exists(index=self.settings.index)
        if taken:
            raise IndexesError(
                f"{self.settings.index!r} exists already: choose another name with `index`, "
                "or delete the existing index if nothing needs it"
            )
        self._create(self._generation(1), dim, kind, bm25, {self.settings.index: {}})

    def start(self, manifest: Manifest, dim: int, kind: str, stamp: int) -> None:
        """Create the first generation, which has no alias yet. Raises IndexesError if it exists already."""
        self.name = self._generation(1)
        self._create(self.name, dim, kind, manifest.bm25)
        self.describe(manifest, stamp)

    def _generation(self, number: int) -> str:
        return f"{self.settings.index}-g{number:06d}"

    def _create(
        self, name: str, dim: int, kind: str, bm25: Bm25Parameters, aliases: Mapping[str, Any] | None = None
    ) -> None:
        if kind not in SERVER_TYPES:
            raise IndexesError(f"unknown kind of vectors {kind!r}: choose one of {', '.join(SERVER_TYPES)}")
        alone = self.settings.stateless
        similarities = [("default", bm25.b)]
        similarities += [(field_name(n), b_of(bm25, field)) for n, field in enumerate(bm25.fields)]
        settings = {
            "number_of_shards": self.settings.shards,
            "number_of_replicas": self.settings.replicas,
            "refresh_interval": "-1",
            "translog": {"durability": "request"},
            "similarity": {name: {"type": "BM25", "k1": bm25.k1, "b": b} for name, b in similarities},
            **self.dialect.settings(dim, kind),
            **({"gc_deletes": KEPT_DELETES} if alone else {}),
        }
        # Wait for the replicas: until they are active, the writes are lost if the primary dies. With too few nodes, the
        # wait times out and the index is used without them.
        wait: dict[str, Any] = (
            {"wait_for_active_shards": "all", "timeout": "20s"} if self.settings.replicas else {}
        )
        fields = mapping(dim, kind, self.dialect.fields, alone, len(bm25.fields))
        with self.errors():
            self.patient.indices.create(
                index=name, settings=settings, mappings=fields, aliases=aliases or {}, **wait
            )

    def current(self) -> str:
        """Return the name of the index that has the alias. Raises BackendUnavailableError if there is none."""
        with self.errors():
            names = sorted(self.client.indices.get_alias(name=self.settings.index).body)
        return str(names[-1])

    def clean(self, rows: int, dead: RowArray, documents: int) -> int:
        """Remove the leftovers of an interrupted writer and return the number of documents that remain.

        Leftovers are the rows from `rows` on and, if the remaining number is not `documents`, the `dead` rows, int64
        [n]. Raises BackendUnavailableError if the server does not answer.
        """
        self.refresh()
        self._delete_by({"range": {"row": {"gte": rows}}})
        if self.count() != documents:
            for query in of_rows(dead):
                self._delete_by(query)
        return self.count()

    def _delete_by(self, query: Mapping[str, Any]) -> None:
        with self.errors():
            self.patient.delete_by_query(index=self.name, query=query, conflicts="proceed", refresh=True)

    def next_generation(
        self, dim: int = 0, kind: str = "hnsw", bm25: Bm25Parameters = DEFAULT
    ) -> ClusterIndex:
        """Create and return the next generation, empty; see `promote`. Raises IndexesError for an unknown `kind`."""
        number = generation(self.current()) + 1 if self.exists() else 1
        after = ClusterIndex(self.settings, self._generation(number), bulk=self._bulk_settings)
        with self.errors():  # left over from an interrupted rebuild
            self.patient.indices.delete(index=after.name, ignore_unavailable=True)
        after._create(after.name, dim, kind, bm25)
        return after

    def outdated(self) -> str:
        """Return a message if an earlier version made the index, so its documents lack current fields; else ''."""
        with self.errors():
            indices = list(self.client.indices.get_mapping(index=self.name).body.values())
        if len(indices) != 1 or not isinstance(indices[0], dict):
            raise BackendUnavailableError(
                f"the server of {self.name} is not {self.settings.product}, or has no such index"
            )
        about = indices[0].get("mappings", {}).get("_meta", {}).get("linker", {})
        return "" if int(about.get("format", 1)) >= FORMAT else f"{self.settings.index} {EARLIER}"

    def exists(self) -> bool:
        """Return whether there is an index behind the alias. Raises BackendUnavailableError."""
        with self.errors():
            return bool(self.client.indices.exists_alias(name=self.settings.index))

    def promote(self, followed: float = 0.0) -> None:
        """Move the alias to this generation, and delete the others at once or `followed` seconds later."""
        alias, new = self.settings.index, self.name
        with self.errors():
            names = self.client.indices.get(index=f"{alias}-g*", expand_wildcards="open").body
            # Another index may be named ALIAS-german.
            own = re.compile(rf"{re.escape(alias)}-g\d{{6}}")
            old = [name for name in names if name != new and own.fullmatch(name)]
            actions: list[dict[str, Any]] = [{"add": {"index": new, "alias": alias}}]
            if followed and old:
                actions += [{"remove": {"index": name, "alias": alias, "must_exist": False}} for name in old]
                self.patient.indices.update_aliases(actions=actions)
                time.sleep(followed)
                actions = []
            actions += [{"remove_index": {"index": name}} for name in old]
            self.patient.indices.update_aliases(actions=actions)
        self.name = alias

    def block_writes(self) -> None:
        """Make the servers refuse further writes to this generation; those in progress finish first."""
        with self.errors():
            self.patient.indices.add_block(index=self.name, block="write")

    def allow_writes(self) -> None:
        """Make the servers accept writes to this generation again."""
        with self.errors():
            self.patient.indices.put_settings(index=self.name, settings={"index.blocks.write": None})

    def drop(self, numberings: bool = False) -> None:
        """Delete every generation; with `numberings`, delete only the index's other row numberings."""
        stem, _, _ = self.settings.index.partition(".")
        current = re.compile(rf"{re.escape(self.settings.index)}-g\d{{6}}")
        pattern = re.compile(rf"{re.escape(stem)}(\.\d+)?-g\d{{6}}")
        with self.errors():
            names = [n for n in self.client.indices.get(index=f"{stem}*-g*").body if pattern.fullmatch(n)]
            names = [n for n in names if bool(current.fullmatch(n)) != numberings]
            if names:
                self.patient.indices.delete(index=names, ignore_unavailable=True)

    def state(self, of: str = "", *, near: bool = False) -> State | None:
        """Return the current state at the name, or of the generation `of`; None if there is no index.

        With `near`, the answering node's state, with or without a master. Raises IndexesError if it is not an index
        of this package without a directory, BackendUnavailableError.
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
                stamp, version = int(about.get("stamp", 0)), int(about.get("format", 1))
                return State(str(real), str(about["manifest"]), stamp, *shape, version)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise not_the_product(self.settings) from None
        raise IndexesError(
            f"{name!r} at {', '.join(self.settings.urls)} is not a linker index without a directory: "
            "choose another name"
        )

    def led_state(self, seconds: float) -> State | None:
        """Return `state` from a node that has a master, waiting `seconds` for an election. May raise NoMasterError."""

        def look() -> State | None:
            self.check_master()
            return self.state(near=True)

        self._near = self.client  # use the patient client, since no search is waiting for this
        return self._requester.retry(look, seconds)

    def unfinished(self) -> State | None:
        """Return the generation of an unfinished build, if there is one."""
        return None if self.exists() else self.state(self._generation(1))

    def describe(self, manifest: Manifest, stamp: int = 0) -> None:
        """Store the manifest, and the next stamp of a build, in the generation."""
        with self.errors():
            indices = self.client.indices.get_mapping(index=self.name).body
            about = next(iter(indices.values()))["mappings"]["_meta"]["linker"]
            about = {**about, "manifest": manifests.dump(manifest).decode(), "stamp": stamp}
            self.patient.indices.put_mapping(index=self.name, meta={"linker": about})

    def bytes(self) -> int:
        """Return the bytes that the index takes on the cluster's disks, including copies."""
        with self.errors():
            stats = self.client.indices.stats(index=self.name, metric="store")
        return int(stats["_all"]["total"]["store"]["size_in_bytes"])

    def expunge(self) -> None:
        """Reclaim the space of deleted documents, which then no longer count in the statistics."""
        with self.errors():
            self.client.options(request_timeout=3600).indices.forcemerge(
                index=self.name, only_expunge_deletes=True
            )

    def remove_all(self) -> None:
        """Delete every generation, the quarantine and the files."""
        self.drop()
        with self.errors():
            for suffix in (QUARANTINE, FILES):
                self.patient.indices.delete(index=f"{self.settings.index}{suffix}", ignore_unavailable=True)


def generation(name: str) -> int:
    """Return the number in the name of a generation; 0 if there is none."""
    found = re.search(r"-g(\d{6})$", name)
    return int(found[1]) if found else 0
