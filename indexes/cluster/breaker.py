"""A circuit breaker for a retriever whose server may be down: after failures, it is only pinged until it answers."""

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from indexes.interface import BackendUnavailableError, Filter, IndexesError, RowArray, RowSearch, ScoreArray
from indexes.text.parameters import Bm25Parameters

T = TypeVar("T")


class PingedSearch(RowSearch, Protocol):
    """A retriever that can check cheaply whether it would answer a search."""

    def ping(self) -> None:
        """Check that a search would be answered. Raises IndexesError if not."""


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """`failures` in a row open the circuit; while it is open, pings are `pause` seconds apart."""

    failures: int = 2
    pause: float = 1.5


class Breaker:
    """RowSearch that protects `retriever` with a circuit breaker. Several threads may search at once.

    While the circuit is open, every search fails immediately and a background thread pings the retriever. After the
    first answered ping, one search goes through as a trial while the others still fail: success closes the circuit,
    failure resumes the pings. Only `BackendUnavailableError` counts as a failure. The thread ends with the first
    answer, when the circuit is closed, or when nothing refers to the breaker any more.
    """

    def __init__(self, retriever: PingedSearch, settings: BreakerSettings | None = None) -> None:
        self.retriever = retriever
        self._settings = settings or BreakerSettings()
        self._lock = threading.Lock()
        self._failures = 0
        self._trial: Literal["", "due", "running"] = ""
        self._reason = ""
        self._pinger: threading.Thread | None = None

    @property
    def is_open(self) -> bool:
        """Whether searches are being refused; true as well if a trial request is due."""
        return self._failures >= self._settings.failures

    def search_rows(
        self, queries: Any, k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, [n, k]. Raises BackendUnavailableError, at once while the circuit is open."""
        parameters = {} if bm25 is None else {"bm25": bm25}
        return self.run(lambda: self.retriever.search_rows(queries, k, where, **parameters))

    def run(self, search: Callable[[], T]) -> T:
        """Return the result of `search`, which queries the retriever's server. Raises the errors of `search_rows`."""
        trial = self._enter()
        try:
            answer = search()
        except BackendUnavailableError as error:
            self._count_failure(str(error), trial)
            raise
        except BaseException:
            if trial:  # for example, an error of the caller, which says nothing about the server
                self._trial = "due"
            raise
        with self._lock:
            self._failures, self._trial = 0, ""
        return answer

    def _enter(self) -> bool:
        """Return whether this search is the trial. Raises BackendUnavailableError if it must not be sent."""
        with self._lock:
            if not self.is_open:
                return False
            if self._trial == "due":
                self._trial = "running"
                return True
            self._keep_pinging()  # restarts the thread, which a forked child does not have
            raise BackendUnavailableError(f"{self._reason} (no further requests until it answers a ping)")

    def _count_failure(self, reason: str, trial: bool) -> None:
        with self._lock:
            self._failures += 1
            self._reason = reason
            if trial:
                self._trial = ""
            if self.is_open:
                self._keep_pinging()

    def _keep_pinging(self) -> None:
        if self._trial or (self._pinger is not None and self._pinger.is_alive()):
            return
        self._pinger = threading.Thread(
            target=_ping, args=(weakref.ref(self), self._settings.pause), name="breaker", daemon=True
        )
        self._pinger.start()

    def _try_ping(self) -> bool:
        """Ping the retriever if the circuit is open; return whether the pings can stop."""
        if not self.is_open:
            return True
        try:
            self.retriever.ping()
        except IndexesError:
            return False
        with self._lock:
            self._trial = "due" if self.is_open else ""
            self._pinger = None  # so that a trial that fails at once can start another pinger
        return True


def _ping(reference: weakref.ref[Breaker], pause: float) -> None:
    """Ping until the retriever answers; between pings, hold no reference that keeps the breaker alive."""
    while True:
        time.sleep(pause)
        breaker = reference()
        if breaker is None or breaker._try_ping():
            return
        del breaker
