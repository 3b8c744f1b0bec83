"""A circuit breaker before a side that may be down: after failures it is left alone until it answers a ping again."""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from indexes.interface import BackendUnavailableError, Filter, IndexesError, RowArray, RowSearch, ScoreArray


class PingedSearch(RowSearch, Protocol):
    """A side that can be asked cheaply whether it would answer a search."""

    def ping(self) -> None:
        """Return if it would; raise IndexesError if not."""


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """`failures` in a row open the circuit; while it is open the side is pinged `pause` seconds apart."""

    failures: int = 2
    pause: float = 1.5


class Breaker:
    """A side that is asked through a breaker. Searches may run in several threads at once.

    While the circuit is open every search fails at once, and a thread in the background pings the side. After a
    ping that is answered one search goes through as a trial, the others still fail: its success closes the circuit,
    its failure goes back to pings. Only `BackendUnavailableError` counts as a failure. The thread ends with the
    first answer, when the circuit is closed, and when nothing refers to the breaker any more.
    """

    def __init__(self, side: PingedSearch, settings: BreakerSettings | None = None) -> None:
        self.side = side
        self._settings = settings or BreakerSettings()
        self._lock = threading.Lock()
        self._failures = 0
        self._trial: Literal["", "due", "running"] = ""
        self._reason = ""
        self._pinger: threading.Thread | None = None

    @property
    def is_open(self) -> bool:
        """Say whether searches are being refused (a trial may be due)."""
        return self._failures >= self._settings.failures

    def search_rows(self, queries: Any, k: int, where: Filter | None = None) -> tuple[RowArray, ScoreArray]:
        """Ask the side. Raises BackendUnavailableError at once while the circuit is open."""
        trial = self._enter()
        try:
            answer = self.side.search_rows(queries, k, where)
        except BackendUnavailableError as error:
            self._failed(str(error), trial)
            raise
        except BaseException:
            if trial:  # a mistake of the caller's, for example: it says nothing about the side
                self._trial = "due"
            raise
        with self._lock:
            self._failures, self._trial = 0, ""
        return answer

    def _enter(self) -> bool:
        """Say whether this search is the trial, which the others wait for."""
        with self._lock:
            if not self.is_open:
                return False
            if self._trial == "due":
                self._trial = "running"
                return True
            self._keep_pinging()  # the thread is gone after a fork
            raise BackendUnavailableError(f"{self._reason} (not asked again until it answers a ping)")

    def _failed(self, reason: str, trial: bool) -> None:
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

    def _settled(self) -> bool:
        """Ping the side if the circuit is open; say whether there is nothing more to ping for."""
        if not self.is_open:
            return True
        try:
            self.side.ping()
        except IndexesError:
            return False
        with self._lock:
            self._trial = "due" if self.is_open else ""
            self._pinger = None  # a trial that fails at once starts another
        return True


def _ping(breaker: weakref.ref[Breaker], pause: float) -> None:
    """Ping until the side answers; between pings nothing keeps the breaker alive."""
    while True:
        time.sleep(pause)
        found = breaker()
        if found is None or found._settled():
            return
        del found
