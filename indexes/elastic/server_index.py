"""The life cycle of an Elasticsearch index: created behind an alias, filled in bulk, counted, rebuilt, dropped.

A document's `_id` is its row, so writing it twice changes nothing: a lost answer, a resumed build and a retry
are all harmless. Nothing becomes visible before a refresh, except that a restarted server refreshes by itself;
readers skip rows that they do not know. An acknowledged write is in the translog on the disk.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from indexes.elastic.asking import Asking
from indexes.elastic.bulk import Bulk, BulkSettings, Operation, Outcome
from indexes.elastic.client import (
    PING_SECONDS,
    REMEDY,
    WRITE_SECONDS,
    ElasticSettings,
    PassingError,
    reason_of,
)
from indexes.elastic.dialects import DIALECTS
from indexes.elastic.mapping import WITH_ORDER, mapping, meta_terms
from indexes.interface import BackendUnavailableError, IndexesError, Matrix, Metadata, RowArray
from indexes.kinds import SERVER_TYPES
from indexes.text.analysis import encodable
from indexes.text.parameters import Bm25Parameters

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,150}(\.\d+)?")
DEFAULT = Bm25Parameters()
ROWS_AT_ONCE = 10_000


def new_name(stem: str) -> str:
    """Return a name for an index: a readable stem plus a random suffix, so that no two directories share a name."""
    readable = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:60] or "linker"
    return f"{readable}-{secrets.token_hex(5)}"


def check_name(name: str) -> str:
    """Return `name` if it can name an index in Elasticsearch. Raises IndexesError otherwise."""
    if not NAME.fullmatch(name):
        raise IndexesError(f"cannot name an index {name!r}: use lower-case letters, digits, '-' and '_'")
    return name


class ElasticStore:
    """The index behind an alias. Its generations are named ALIAS-g000001 and so on; one of them has the alias."""

    _extra_settings: Mapping[str, Any] = {}  # of a new index

    def __init__(
        self, settings: ElasticSettings, timeout: float | None = None, bulk: BulkSettings | None = None
    ) -> None:
        """Create the client; nothing is sent. `timeout` is per search, in seconds. Raises what `connect` raises."""
        check_name(settings.index)
        self.settings = settings
        self.dialect = DIALECTS[settings.server]
        self.client: Elasticsearch = self.dialect.connect(settings, timeout)
        self._patient = self.client.options(request_timeout=WRITE_SECONDS)
        # The same shard copies answer this process, as long as they do.
        self._asking = Asking(self.client, settings, secrets.token_hex(8))
        self._target = settings.index
        self._bulk_settings = bulk
        self._ordered: bool | None = None  # whether the index has the terms of ranges, once it is known
        self.bulk = Bulk(self._send, bulk)

    def errors(self) -> Any:
        """Return a context manager that turns the client's errors into ours."""
        return self.dialect.errors(self.settings)

    def create(self, dim: int = 0, kind: str = "hnsw", bm25: Bm25Parameters = DEFAULT) -> None:
        """Create the first generation, with the alias; `bm25` sets its k1 and b for good.

        Raises IndexesError where the name is taken.
        """
        with self.errors():
            taken = self.client.indices.exists(index=self.settings.index)
        if taken:
            raise IndexesError(
                f"{self.settings.index!r} exists already: choose another name with --index, "
                "or delete the existing index if nothing needs it"
            )
        self._create(f"{self.settings.index}-g000001", dim, kind, bm25, {self.settings.index: {}})

    def _create(
        self, name: str, dim: int, kind: str, bm25: Bm25Parameters, aliases: Mapping[str, Any]
    ) -> None:
        if kind not in SERVER_TYPES:
            raise IndexesError(f"unknown kind of vectors {kind!r}: choose one of {', '.join(SERVER_TYPES)}")
        settings = {
            "number_of_shards": self.settings.shards,
            "number_of_replicas": self.settings.replicas,
            "refresh_interval": "-1",
            "translog": {"durability": "request"},
            "similarity": {"default": {"type": "BM25", "k1": bm25.k1, "b": bm25.b}},
            **self.dialect.settings(dim, kind),
        }
        # A replica that is not active yet saves no write when its primary dies. With too few nodes, do without.
        wait: dict[str, Any] = (
            {"wait_for_active_shards": "all", "timeout": "20s"} if self.settings.replicas else {}
        )
        with self.errors():
            self._patient.indices.create(
                index=name,
                settings={**settings, **self._extra_settings},
                mappings=self._mapping(dim, kind),
                aliases=aliases,
                **wait,
            )

    def _mapping(self, dim: int, kind: str) -> dict[str, Any]:
        return mapping(dim, kind, self.dialect.fields)

    def generation(self) -> str:
        """Return the name of the index that has the alias. Raises BackendUnavailableError where there is none."""
        with self.errors():
            names = sorted(self.client.indices.get_alias(name=self.settings.index).body)
        return str(names[-1])

    def close(self) -> None:
        """Stop the threads and close the connections; operations that were not flushed may be lost."""
        self.bulk.close()
        self.client.close()

    def put(
        self,
        first: int,
        ids: Sequence[str],
        terms: Sequence[str] | None = None,
        vectors: Mapping[str, Matrix] | None = None,
        metadata: Sequence[Metadata] | None = None,
    ) -> None:
        """Queue the documents of the rows from `first` on.

        `terms` are separated by blanks, `vectors` are float32 [n, dim] by field, `metadata` can be filtered by.
        Raises the error of an earlier request.
        """
        for i, id_ in enumerate(ids):
            source: dict[str, Any] = {"row": first + i, "id": id_}
            if terms is not None:
                source["terms"] = terms[i]
            source |= {name: np.asarray(block[i]) for name, block in (vectors or {}).items()}
            if metadata is not None and (meta := self._meta_terms(metadata[i])):
                source["meta"] = meta
            self.bulk.put(
                Operation(
                    b'{"index":{"_id":"%d"}}' % (first + i),
                    orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY),
                )
            )

    def _meta_terms(self, metadata: Metadata) -> list[str]:
        return meta_terms(metadata, self.ordered()) if metadata else []

    def delete(self, rows: RowArray) -> None:
        """Queue the deletion of `rows`, int64 [n]; a missing row is no error."""
        for row in rows.tolist():
            self.bulk.put(Operation(b'{"delete":{"_id":"%d"}}' % row))

    def flush(self) -> None:
        """Wait until the queue is acknowledged, then make it visible. Raises what `Bulk.flush` raises."""
        self.bulk.flush()
        self.refresh()

    def refresh(self) -> None:
        """Make what is written visible on every copy that searches may ask.

        Raises BackendUnavailableError where a shard, or a copy, does not do so in time.
        """
        patience = (self._bulk_settings or BulkSettings()).patience
        self._asking.patiently(self._refresh, patience if self.settings.replicas else 0.0)

    def _refresh(self) -> None:
        with self.errors():
            answer = self._patient.indices.refresh(index=self._target).body
            self._asking.check(answer)
            done, copies = (answer.get("_shards", {}).get(name) for name in ("successful", "total"))
            if done == copies:
                return
            # Copies that wait for a node are not counted as failed, and neither are shards without any copy.
            health = self.client.cluster.health(index=self._target)
        primaries = int(health["active_primary_shards"])
        if primaries < self.settings.shards or done < int(health["active_shards"]):
            raise PassingError(
                f"{self.settings.index} has {primaries} of its {self.settings.shards} shards now: what was "
                f"acknowledged is safe, but searches may not find it yet; {REMEDY}"
            )

    def _send(self, lines: Sequence[bytes], index: str = "") -> Sequence[Outcome]:
        with self.errors():
            answer = self._patient.options(max_retries=0).bulk(
                operations=lines,  # type: ignore[arg-type]  # bytes are sent as they are
                index=index or self._target,
                # Otherwise a lost index would be created again without its mapping.
                require_alias=(index or self._target) == self.settings.index,
                filter_path="items.*.status,items.*.error",
            )
        items = (next(iter(item.values())) for item in answer.body["items"])
        return [Outcome(i["status"], reason_of(i["error"]) if "error" in i else "") for i in items]

    def count(self, query: Mapping[str, Any] | None = None) -> int:
        """Return the number of visible documents, or of those that match `query`. Raises BackendUnavailableError."""
        return self._asking.patiently(lambda: self._count(query))

    def _count(self, query: Mapping[str, Any] | None) -> int:
        with self.errors():
            found = self.client.count(index=self._target, query=query)
        self._asking.check(found.body)
        return int(found["count"])

    def count_rows(self, rows: RowArray) -> int:
        """Return how many of `rows`, int64 [n], are visible. Raises BackendUnavailableError."""
        return sum(self.count(query) for query in _queries(rows))

    def msearch(self, bodies: Sequence[Mapping[str, Any]]) -> list[list[list[Any]]]:
        """Return the sort values of each hit, per search: its score, its row and what else `bodies` sort by.

        Raises BackendUnavailableError where the answer is missing or partial, IndexesError where a search is rejected.
        """
        return self._asking.msearch(self._target, bodies)

    def has_field(self, field: str) -> bool:
        """Return whether a visible document has terms of this metadata field. Raises BackendUnavailableError."""
        query = {"prefix": {"meta": f"{encodable(field)}\x1f"}}
        with self.errors():
            answer = self.client.search(
                index=self._target, query=query, size=0, terminate_after=1, track_total_hits=True,
                allow_partial_search_results=False,
            )  # fmt: skip
        return int(answer["hits"]["total"]["value"]) > 0

    def ping(self) -> None:
        """Return if the index would answer a search. Raises BackendUnavailableError or IndexesError if not."""
        with self.errors():
            self.client.options(max_retries=0, request_timeout=PING_SECONDS).search(
                index=self._target, size=0, terminate_after=1, track_total_hits=False,
                allow_partial_search_results=False,
            )  # fmt: skip

    def rows(self, after: int = -1) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (row, stored fields) of every visible document after row `after`, ascending.

        Raises BackendUnavailableError where the server does not answer.
        """
        while True:
            with self.errors():
                hits = self.client.search(
                    index=self._target, size=1000, sort=[{"row": "asc"}], search_after=[after],
                    track_total_hits=False, allow_partial_search_results=False,
                )["hits"]["hits"]  # fmt: skip
            for hit in hits:
                after = hit["sort"][0]
                yield after, hit["_source"]
            if not hits:
                return

    def fetch(self, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the stored fields by row; missing rows are left out. Raises BackendUnavailableError."""
        if not rows:
            return {}
        with self.errors():
            docs = self.client.mget(index=self._target, ids=[str(row) for row in rows])["docs"]
        return {int(doc["_id"]): doc["_source"] for doc in docs if doc.get("found")}

    def clean(self, rows: int, dead: RowArray, documents: int) -> int:
        """Remove the leftovers of an interrupted writer and return the number of documents that remain.

        These are the rows from `rows` on and, where the remaining number is not `documents`, the `dead` rows, int64
        [n]. Raises BackendUnavailableError where the server does not answer.
        """
        self.refresh()
        self._delete_by({"range": {"row": {"gte": rows}}})
        if self.count() != documents:
            for query in _queries(dead):
                self._delete_by(query)
        return self.count()

    def _delete_by(self, query: Mapping[str, Any]) -> None:
        with self.errors():
            self._patient.delete_by_query(index=self._target, query=query, conflicts="proceed", refresh=True)

    def next_generation(
        self, dim: int = 0, kind: str = "hnsw", bm25: Bm25Parameters = DEFAULT
    ) -> ElasticStore:
        """Create the next generation, empty and without the alias, and return the store that writes to it.

        `promote` on that store gives it the alias. Raises IndexesError where `kind` is unknown.
        """
        number = int(self.generation().rpartition("-g")[2]) + 1 if self.exists() else 1
        store = ElasticStore(self.settings, bulk=self._bulk_settings)
        store._target = f"{self.settings.index}-g{number:06d}"
        with self.errors():  # the leftover of an interrupted rebuild
            self._patient.indices.delete(index=store._target, ignore_unavailable=True)
        store._create(store._target, dim, kind, bm25, {})
        return store

    def format(self) -> int:
        """Return the format version of the mapping, which determines the fields of the documents."""
        with self.errors():
            indices = list(self.client.indices.get_mapping(index=self._target).body.values())
        if len(indices) != 1 or not isinstance(indices[0], dict):
            raise BackendUnavailableError(
                f"what answers for {self._target} is no {self.settings.product}, or has no such index"
            )
        return int(indices[0].get("mappings", {}).get("_meta", {}).get("linker", {}).get("format", 1))

    def ordered(self, again: bool = False) -> bool:
        """Return whether numbers and dates can be compared, for which an earlier version's index has no terms.

        The server is asked once; with `again`, once more where the answer was no, since a rebuild may have come.
        """
        if self._ordered is None or (again and not self._ordered):
            self._ordered = self.format() >= WITH_ORDER
        return self._ordered

    def exists(self) -> bool:
        """Return whether there is an index behind the alias. Raises BackendUnavailableError."""
        with self.errors():
            return bool(self.client.indices.exists_alias(name=self.settings.index))

    def promote(self) -> None:
        """Move the alias to this store's generation and delete the other generations, in one step."""
        alias, new = self.settings.index, self._target
        with self.errors():
            names = self.client.indices.get(index=f"{alias}-g*", expand_wildcards="open").body
            # Another index may be named ALIAS-german.
            own = re.compile(rf"{re.escape(alias)}-g\d{{6}}")
            old = [name for name in names if name != new and own.fullmatch(name)]
            actions: list[dict[str, Any]] = [{"add": {"index": new, "alias": alias}}]
            actions += [{"remove_index": {"index": name}} for name in old]
            self._patient.indices.update_aliases(actions=actions)
        self._target = alias

    def drop(self, numberings: bool = False) -> None:
        """Delete every generation; with `numberings`, delete the index's other row numberings instead."""
        stem, _, _ = self.settings.index.partition(".")
        current = re.compile(rf"{re.escape(self.settings.index)}-g\d{{6}}")
        pattern = re.compile(rf"{re.escape(stem)}(\.\d+)?-g\d{{6}}")
        with self.errors():
            names = [n for n in self.client.indices.get(index=f"{stem}*-g*").body if pattern.fullmatch(n)]
            names = [n for n in names if bool(current.fullmatch(n)) != numberings]
            if names:
                self._patient.indices.delete(index=names, ignore_unavailable=True)


def _queries(rows: RowArray) -> Iterator[dict[str, Any]]:
    """Yield queries that together match `rows`, int64 [n], each within the server's limit of terms."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield {"terms": {"row": rows[start : start + ROWS_AT_ONCE].tolist()}}


def as_rows(hits: Sequence[Sequence[float]]) -> tuple[RowArray, np.ndarray[Any, np.dtype[np.float32]]]:
    """Return the rows (int64) and scores (float32), both [n], of one search's n sort values (score, row)."""
    rows = np.fromiter((hit[1] for hit in hits), dtype=np.int64, count=len(hits))
    return rows, np.fromiter((hit[0] for hit in hits), dtype=np.float32, count=len(hits))
