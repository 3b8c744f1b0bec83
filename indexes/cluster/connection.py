"""This process's access to one index on a cluster: sending documents, making them visible, counting them.

An acknowledged write is in the translog on the disk. Nothing becomes visible before a refresh, except that a restarted
server refreshes by itself.
"""

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from indexes.cluster.asking import Requester
from indexes.cluster.bulk import Bulk, BulkOutcome, BulkSettings
from indexes.cluster.client import (
    PING_SECONDS,
    REMEDIES,
    REMEDY,
    WRITE_SECONDS,
    ElasticSettings,
    PassingError,
    reason_of,
)
from indexes.cluster.dialects import DIALECTS
from indexes.interface import RowArray

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

ROWS_AT_ONCE = 10_000
COUNTED = 5.0  # how many seconds a count is reused to choose between exact and approximate search


class NoMasterError(PassingError):
    """The answering node is cut off from most others, or a master is being elected."""


class Connection:
    """Requests to one index on the cluster."""

    def __init__(
        self,
        settings: ElasticSettings,
        at: str = "",
        timeout: float | None = None,
        bulk: BulkSettings | None = None,
    ) -> None:
        """Create a client for generation `at` (default: the alias's); send nothing. Raises the errors of `connect`."""
        self.settings, self.name = settings, at or settings.index
        self.dialect = DIALECTS[settings.server]
        self.client: Elasticsearch = self.dialect.connect(settings, timeout)
        self.patient = self.client.options(request_timeout=WRITE_SECONDS)
        self._near = self.client.options(request_timeout=PING_SECONDS)  # client for requests to a single node
        # The same shard copies answer this process, as long as they are up.
        self._requester = Requester(self.client, settings, secrets.token_hex(8))
        self._bulk_settings = bulk or BulkSettings()
        self._counted = (0.0, 0)
        self.bulk = self.sending()

    def errors(self) -> AbstractContextManager[None]:
        """Return a context manager that turns the client's errors into ours."""
        return self.dialect.errors(self.settings)

    def close(self) -> None:
        """Stop the threads and close the connections; operations that were not flushed may be lost."""
        self.bulk.close()
        self.client.close()

    def sending(self, index: str = "") -> Bulk:
        """Return a bulk writer to `index`, by default to this index."""
        return Bulk(lambda lines: self._send(lines, index or self.name), self._bulk_settings)

    def _send(self, lines: Sequence[bytes], index: str) -> Sequence[BulkOutcome]:
        with self.errors():
            answer = self.patient.options(max_retries=0).bulk(
                operations=lines,  # type: ignore[arg-type]  # bytes are sent as they are
                index=index,
                # Otherwise a lost index would be recreated without its mapping.
                require_alias=index == self.settings.index,
                filter_path="items.*.status,items.*.error",
            )
        items = (next(iter(item.values())) for item in answer.body["items"])
        return [BulkOutcome(i["status"], reason_of(i["error"]) if "error" in i else "") for i in items]

    def flush(self) -> None:
        """Wait until the queue is acknowledged, then make it visible. Raises the same errors as `Bulk.flush`."""
        self.bulk.flush()
        self.refresh()

    def refresh(self) -> None:
        """Make written documents visible on every copy that is searched. Raises BackendUnavailableError."""
        self._requester.retry(self._refresh, self._bulk_settings.patience if self.settings.replicas else 0.0)

    def _refresh(self) -> None:
        with self.errors():
            answer = self.patient.indices.refresh(index=self.name).body
            self._requester.check(answer)
            done, copies = (answer.get("_shards", {}).get(name) for name in ("successful", "total"))
            if done == copies:
                return
            # Copies waiting for a node are not counted as failed, nor are shards without any copy.
            health = self.client.cluster.health(index=self.name)
        primaries = int(health["active_primary_shards"])
        if primaries < self.settings.shards or done < int(health["active_shards"]):
            raise PassingError(
                f"{self.settings.index}: only {primaries} of {self.settings.shards} shards are available, so "
                f"searches may not find documents yet; those acknowledged are safe: {REMEDY}"
            )

    def health(self) -> dict[str, int]:
        """Return how many shards are `missing`, `waiting` for a node, or `recovering` from a disk or a copy."""
        with self.errors():
            found = self.client.cluster.health(index=self.name)
            shards = self.client.indices.stats(index=self.name, metric="docs")["_shards"]
        missing = self.settings.shards - int(found["active_primary_shards"])
        waiting = int(shards["total"]) - int(found["active_shards"]) - missing
        return {"missing": missing, "waiting": waiting, "recovering": int(found["initializing_shards"])}

    def ping(self) -> None:
        """Check that the index would answer a search. Raises BackendUnavailableError or IndexesError if not."""
        with self.errors():
            self._requester.ping(self.name)

    def check_master(self) -> None:
        """Raise NoMasterError if the answering node has no master: it is cut off from most others, or in an election.

        Such a node goes on answering searches, with the documents that it had. Raises BackendUnavailableError.
        """
        with self.errors():
            state = self._near.cluster.state(metric="master_node", local=True, filter_path="master_node").body
        if isinstance(state, dict) and state.get("master_node", "") is None:
            raise NoMasterError(
                f"{self.settings.where} has no master now, so its documents may be "
                f"outdated: {REMEDIES['master']}"
            )

    def msearch(self, bodies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the response to each search. Raises the errors of `Requester.msearch`."""
        return self._requester.msearch(self.name, bodies)

    def count(self, query: Mapping[str, Any] | None = None) -> int:
        """Return the number of visible documents, or of those matching `query`. Raises BackendUnavailableError."""
        return self._requester.retry(lambda: self._count(query))

    def _count(self, query: Mapping[str, Any] | None) -> int:
        with self.errors():
            found = self.client.count(index=self.name, query=query)
        self._requester.check(found.body)
        return int(found["count"])

    def about(self) -> int:
        """Return the number of visible documents, as counted at most a few seconds ago."""
        at, count = self._counted
        if time.monotonic() - at > COUNTED:
            count = self.count()
            self._counted = (time.monotonic(), count)
        return count

    def count_rows(self, rows: RowArray) -> int:
        """Return how many of `rows`, int64 [n], are visible. Raises BackendUnavailableError."""
        return sum(self.count(query) for query in of_rows(rows))


def of_rows(rows: RowArray) -> Iterator[dict[str, Any]]:
    """Yield queries that together match `rows`, int64 [n], each within the server's limit of terms."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield {"terms": {"row": rows[start : start + ROWS_AT_ONCE].tolist()}}
