"""Metrics for Prometheus: of this process, or of all workers if PROMETHEUS_MULTIPROC_DIR names a folder."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SHARED = "PROMETHEUS_MULTIPROC_DIR"


class ServerMetrics:
    """Counters and gauges. With several workers, counts are summed and memory is listed for each."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "linker_requests",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "linker_request_seconds", "Time to the last byte of the answer, in seconds.", ["route"], buckets=SECONDS,
            registry=registry,
        )  # fmt: skip
        self._degraded = Counter(
            "linker_degraded_answers", "Answers of one retriever while the other was unavailable.", ["index"],
            registry=registry,
        )  # fmt: skip
        self._queries = Counter(
            "linker_queries", "Texts that were searched for.", ["index"], registry=registry
        )
        self._documents = Gauge(
            "linker_documents", "Documents of the open generation.", ["index"], registry=registry,
            multiprocess_mode="livemax",
        )  # fmt: skip
        self._generation = Gauge(
            "linker_generation", "Open generation; of several workers, the oldest.", ["index"], registry=registry,
            multiprocess_mode="livemin",
        )  # fmt: skip
        self._pending = Gauge(
            "linker_pending_calls", "Searches and changes that run or wait.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self._running = Gauge(
            "linker_requests_in_progress", "Requests that are being answered.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self._memory = Gauge(
            "linker_resident_memory_bytes", "Resident memory; mapped files that are shared count in each worker.",
            registry=registry, multiprocess_mode="liveall",
        )  # fmt: skip
        self._started = Gauge(
            "linker_start_time_seconds", "When a worker started, in seconds since 1970.", registry=registry,
            multiprocess_mode="livemin",
        )  # fmt: skip
        self._started.set(time.time())
        self._looked = -math.inf

    def began(self) -> None:
        """Count a request as in progress until `request` is called for it."""
        self._running.inc()

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._running.dec()
        method = method if method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH") else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def searched(self, index: str, texts: int, degraded: bool) -> None:
        """Count an answered search of that many texts."""
        self._queries.labels(index).inc(texts)
        if degraded:
            self._degraded.labels(index).inc()

    def is_due(self) -> bool:
        """Return whether gauges that other workers read are over a second old; if so, the caller must set them now."""
        now = time.monotonic()
        is_due = SHARED in os.environ and now - self._looked > 1
        if is_due:
            self._looked = now
        return is_due

    def look(self, pending: int, indexes: Mapping[str, tuple[int, int]]) -> None:
        """Set the gauges to current values: calls running or waiting, and documents and generation of each index."""
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
