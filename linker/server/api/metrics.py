"""Metrics for Prometheus: of this process, or of all workers if PROMETHEUS_MULTIPROC_DIR names a folder."""

import functools
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from linker.server.api.workers import SHARED

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ServerMetrics:
    """Counters and gauges. With several workers, counts are summed and memory is listed per worker."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = functools.partial(Counter, registry=self._registry)
        gauge = functools.partial(Gauge, registry=self._registry)
        self._requests = counter(
            "linker_requests", "Requests by route, method and status.", ["route", "method", "status"]
        )
        self._seconds = Histogram(
            "linker_request_seconds", "Time to the last byte of the answer, in seconds.", ["route"], buckets=SECONDS,
            registry=self._registry,
        )  # fmt: skip
        only = "Searches answered by one retriever while the other was unavailable."
        self._degraded = counter("linker_degraded_answers", only, ["index"])
        self._queries = counter("linker_queries", "Texts searched for.", ["index"])
        size, oldest = "Documents of the open generation.", "Open generation; of several workers, the oldest."
        self._documents = gauge("linker_documents", size, ["index"], multiprocess_mode="livemax")
        self._generation = gauge("linker_generation", oldest, ["index"], multiprocess_mode="livemin")
        calls, answers = "Searches and changes that run or wait.", "Requests that are being answered."
        self._pending = gauge("linker_pending_calls", calls, multiprocess_mode="livesum")
        self._running = gauge("linker_requests_in_progress", answers, multiprocess_mode="livesum")
        memory = "Resident memory; mapped files that are shared count in each worker."
        self._memory = gauge("linker_resident_memory_bytes", memory, multiprocess_mode="liveall")
        start = "When a worker started, in seconds since 1970."
        self._started = gauge("linker_start_time_seconds", start, multiprocess_mode="livemin")
        self._started.set(time.time())
        self._last_look = -math.inf

    def begin(self) -> None:
        """Count a request as in progress until `request` is called for it."""
        self._running.inc()

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._running.dec()
        method = method if method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH") else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_search(self, index: str, texts: int, degraded: bool) -> None:
        """Count a completed search for this many texts."""
        self._queries.labels(index).inc(texts)
        if degraded:
            self._degraded.labels(index).inc()

    def is_due(self) -> bool:
        """Return whether gauges that other workers read are over a second old; if so, the caller must set them now."""
        now = time.monotonic()
        is_due = SHARED in os.environ and now - self._last_look > 1
        if is_due:
            self._last_look = now
        return is_due

    def look(self, pending: int, indexes: Mapping[str, tuple[int, int]]) -> None:
        """Set the gauges: `pending` calls (running or waiting), and by index its (documents, generation)."""
        for name, (documents, generation) in indexes.items():
            self._documents.labels(name).set(documents)
            self._generation.labels(name).set(generation)
        self._pending.set(pending)
        self._memory.set(_resident())

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        if not os.environ.get(SHARED):
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # it has no types
        return generate_latest(registry)


def _resident() -> int:
    """Return the resident memory in bytes; 0 if the system does not report it."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return 0
