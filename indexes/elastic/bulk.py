"""Bulk writes in parallel: bounded in flight, and only what failed is sent again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from indexes.interface import BackendUnavailableError, IndexesError

CHUNK_BYTES = 4 << 20
CHUNK_OPERATIONS = 2000
RETRIED = (429, 502, 503, 504)


class Operation(NamedTuple):
    """One line that says what to do with which document, and the document where there is one."""

    action: bytes
    source: bytes | None = None

    @property
    def lines(self) -> tuple[bytes, ...]:
        """The lines of the request."""
        return (self.action,) if self.source is None else (self.action, self.source)


class Outcome(NamedTuple):
    """What became of one operation: HTTP status, and the reason of a failure."""

    status: int
    reason: str = ""


Send = Callable[[Sequence[bytes]], Sequence[Outcome]]


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """`workers` requests at once; an operation that is refused as busy is sent again for `patience` seconds."""

    workers: int = 3
    patience: float = 120.0
    first_delay: float = 0.1
    longest_delay: float = 5.0


class Bulk:
    """Collects operations into requests. They must be idempotent: one whose answer was lost is sent again."""

    def __init__(self, send: Send, settings: BulkSettings | None = None) -> None:
        """`send` posts lines and returns each operation's outcome; BackendUnavailableError means try again."""
        self._send, self._settings = send, settings or BulkSettings()
        self._waiting: list[Operation] = []
        self._bytes = 0
        self._pool: ThreadPoolExecutor | None = None
        self._room = threading.Semaphore(
            2 * self._settings.workers
        )  # back-pressure: `put` waits when it is full
        self._sent: list[Future[None]] = []
        self._closed = threading.Event()
        self.retried = 0  # operations that were sent again

    def put(self, operation: Operation) -> None:
        """Queue an operation; wait while too many are under way. Raises what an earlier request failed with."""
        self._waiting.append(operation)
        self._bytes += sum(map(len, operation.lines))
        if self._bytes >= CHUNK_BYTES or len(self._waiting) >= CHUNK_OPERATIONS:
            self._submit()

    def flush(self) -> None:
        """Send what is queued and wait until everything was acknowledged.

        Raises BackendUnavailableError when patience ends, IndexesError for what the server will never take.
        """
        if self._waiting:
            self._submit()
        sent, self._sent = self._sent, []
        for future in sent:
            future.result()

    def close(self) -> None:
        """Give up what is queued and stop the threads."""
        self._waiting.clear()
        self._closed.set()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _submit(self) -> None:
        operations, self._waiting, self._bytes = self._waiting, [], 0
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._settings.workers, thread_name_prefix="bulk")
        self._room.acquire()
        future = self._pool.submit(self._deliver, operations)
        future.add_done_callback(lambda _: self._room.release())
        for done in [f for f in self._sent if f.done()]:
            self._sent.remove(done)
            done.result()
        self._sent.append(future)

    def _deliver(self, operations: Sequence[Operation]) -> None:
        """Send until every operation was taken, waiting longer each time, with some chance in it."""
        end = time.monotonic() + self._settings.patience
        delay = self._settings.first_delay
        while True:
            operations, reason = self._attempt(operations)
            if not operations:
                return
            if time.monotonic() + delay > end:
                raise BackendUnavailableError(
                    f"{len(operations)} documents were not taken within {self._settings.patience:g} s: {reason}"
                )
            if self._closed.wait(delay * random.uniform(0.5, 1.5)):
                return
            delay = min(2 * delay, self._settings.longest_delay)
            self.retried += len(operations)

    def _attempt(self, operations: Sequence[Operation]) -> tuple[Sequence[Operation], str]:
        """Send once; return what must be sent again, and why."""
        try:
            outcomes = self._send([line for operation in operations for line in operation.lines])
        except BackendUnavailableError as e:
            return operations, str(e)
        left, reason = [], ""
        for operation, outcome in zip(operations, outcomes, strict=True):
            if outcome.status in RETRIED:
                left.append(operation)
                reason = outcome.reason
            elif outcome.status >= 400 and not (outcome.status == 404 and operation.source is None):
                raise IndexesError(f"Elasticsearch refused a document ({outcome.status}): {outcome.reason}")
        return left, reason
