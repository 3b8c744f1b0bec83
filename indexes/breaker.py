"""A circuit breaker before a side that may be down: after failures it is left alone for a while, then tried again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from indexes.interface import BackendUnavailableError, Filter, RowArray, RowSearch, ScoreArray


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """`failures` in a row open the circuit for `pause` seconds, doubled at every failed trial up to `longest`."""

    failures: int = 2
    pause: float = 5.0
    longest: float = 60.0


class Breaker:
    """A side that is asked through a breaker. Searches may run in several threads at once.

    While the circuit is open every search fails at once. When the pause is over one search goes through as a
    trial, the others still fail: its success closes the circuit. Only `BackendUnavailableError` counts as a failure.
    """

    def __init__(
        self,
        side: RowSearch,
        settings: BreakerSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.side = side
        self._settings = settings or BreakerSettings()
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._pause = self._settings.pause
        self._open_until = 0.0  # meaningful while the failures have reached their number
        self._reason = ""

    @property
    def is_open(self) -> bool:
        """Say whether searches are being refused (a trial may be due)."""
        return self._failures >= self._settings.failures

    def search_rows(self, queries: Any, k: int, where: Filter | None = None) -> tuple[RowArray, ScoreArray]:
        """Ask the side. Raises BackendUnavailableError at once while the circuit is open."""
        self._enter()
        try:
            answer = self.side.search_rows(queries, k, where)
        except BackendUnavailableError as error:
            self._failed(str(error))
            raise
        except BaseException:
            self._let_another_try()
            raise
        with self._lock:
            self._failures, self._pause = 0, self._settings.pause
        return answer

    def _enter(self) -> None:
        with self._lock:
            if not self.is_open:
                return
            left = self._open_until - self._clock()
            if left > 0:
                raise BackendUnavailableError(f"{self._reason} (not asked again for {left:.0f} s)")
            self._open_until = self._clock() + self._pause  # this search is the trial; others wait for it

    def _failed(self, reason: str) -> None:
        with self._lock:
            if self.is_open:
                self._pause = min(self._pause * 2, self._settings.longest)
            self._failures += 1
            self._reason = reason
            if self.is_open:
                self._open_until = self._clock() + self._pause

    def _let_another_try(self) -> None:
        """Take back a trial that said nothing about the side's health, a mistake of the caller's for example."""
        with self._lock:
            self._open_until = self._clock()
