"""Token buckets: a number of requests per second for each client, and a burst of twice as many."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MOST = 10_000  # number of clients remembered; the least recently seen is forgotten first


class Rates:
    """One bucket per name, filled at `rate` per second up to `burst`; a rate of 0 means no limit."""

    def __init__(
        self, rate: float, burst: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst or max(1.0, 2 * rate), clock
        # The number of tokens left, and the time of that count.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str) -> int:
        """Take one from a bucket and return 0, or return the whole seconds until there will be one."""
        if not self._rate:
            return 0
        now = self._clock()
        left, then = self._buckets.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        passes = left >= 1
        self._buckets[name] = (left - 1 if passes else left, now)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        return 0 if passes else math.ceil((1 - left) / self._rate)

    def give_back(self, name: str) -> None:
        """Put back the unit that `wait` took from a bucket."""
        if name in self._buckets:
            left, then = self._buckets[name]
            self._buckets[name] = (left + 1, then)
