"""Parallel bulk writes with a limit on requests in flight; only failed operations are sent again."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from indexes.cluster.client import BLOCKED, BUSY, remedy_of
from indexes.interface import BackendUnavailableError, IndexesError

CHUNK_BYTES = 4 << 20
CHUNK_OPERATIONS = 2000
RETRIED = (*BUSY, 500)
# Temporary failures: the node has lost its copy, but another node has one; the index is being rebuilt.
PASSING = ("shard_not_found", BLOCKED)
CONFLICT = 409  # the index has this version of the document, or a later one


class Operation(NamedTuple):
    """One bulk operation: the action line and the document, if there is one."""

    action: bytes
    source: bytes | None = None

    @property
    def lines(self) -> tuple[bytes, ...]:
        """The lines of the request body."""
        return (self.action,) if self.source is None else (self.action, self.source)


class BulkOutcome(NamedTuple):
    """The result of one operation: its HTTP status, and the reason for a failure."""

    status: int
    reason: str = ""


Send = Callable[[Sequence[bytes]], Sequence[BulkOutcome]]


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """`workers` requests run at once; an operation that a busy server refuses is retried for `patience` seconds."""

    workers: int = 3
    patience: float = 120.0
    first_delay: float = 0.1
    longest_delay: float = 5.0


class Bulk:
    """Collects operations into requests. They must be idempotent: if a response is lost, the request is sent again.

    An operation that arrives too late, because the index has a later version of the document, counts as done.
    """

    def __init__(self, send: Send, settings: BulkSettings | None = None) -> None:
        """`send` posts lines and returns a `BulkOutcome` per operation; its BackendUnavailableError is retried."""
        self._send, self._settings = send, settings or BulkSettings()
        self._waiting: list[Operation] = []
        self._bytes = 0
        self._pool: ThreadPoolExecutor | None = None
        # Back-pressure: `put` waits when all slots are taken.
        self._room = threading.Semaphore(2 * self._settings.workers)
        self._sent: list[Future[None]] = []
        self._closed = threading.Event()
        self.retried = 0  # number of operations that were sent again

    def put(self, operation: Operation) -> None:
        """Queue an operation; wait while too many requests are in flight. Raises the error of an earlier request."""
        self._waiting.append(operation)
        self._bytes += sum(map(len, operation.lines))
        if self._bytes >= CHUNK_BYTES or len(self._waiting) >= CHUNK_OPERATIONS:
            self._submit()

    def flush(self) -> None:
        """Send the queue and wait for acknowledgement.

        Raises BackendUnavailableError, or IndexesError if the server refuses an operation.
        """
        if self._waiting:
            self._submit()
        sent, self._sent = self._sent, []
        for future in sent:
            future.result()

    def close(self) -> None:
        """Discard the queue and stop the threads."""
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
        for finished in [f for f in self._sent if f.done()]:
            self._sent.remove(finished)
            finished.result()
        self._sent.append(future)

    def _deliver(self, operations: Sequence[Operation]) -> None:
        """Send until every operation is accepted, with exponential back-off and random jitter."""
        end = time.monotonic() + self._settings.patience
        delay = self._settings.first_delay
        while True:
            operations, reason = self._attempt(operations)
            if not operations:
                return
            if time.monotonic() + delay > end:
                raise BackendUnavailableError(
                    f"the servers did not accept {len(operations)} documents "
                    f"within {self._settings.patience:g} s: {reason}"
                )
            if self._closed.wait(delay * random.uniform(0.5, 1.5)):
                return
            delay = min(2 * delay, self._settings.longest_delay)
            self.retried += len(operations)

    def _attempt(self, operations: Sequence[Operation]) -> tuple[Sequence[Operation], str]:
        """Send once; return the operations to send again and the last reason. Raises IndexesError for a rejection."""
        try:
            outcomes = self._send([line for operation in operations for line in operation.lines])
        except BackendUnavailableError as e:
            return operations, str(e)
        retries, reason = [], ""
        for operation, outcome in zip(operations, outcomes, strict=True):
            if outcome.status in RETRIED or any(said in outcome.reason for said in PASSING):
                retries.append(operation)
                reason = f"{outcome.reason}: {remedy_of(outcome.reason)}"
            elif outcome.status >= 400 and not _is_done(operation, outcome):
                raise IndexesError(f"the servers rejected a document ({outcome.status}): {outcome.reason}")
        return retries, reason


def _is_done(operation: Operation, outcome: BulkOutcome) -> bool:
    """Return whether an operation had no effect because it is done: a later version exists, or the document is gone.

    If a document is missing, the response gives no reason; if the index is missing, it gives one.
    """
    if outcome.status == CONFLICT:
        return True
    return outcome.status == 404 and operation.source is None and not outcome.reason
