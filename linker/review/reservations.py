"""Which reader has which document open: nobody else gets a document until its reader has released it."""

import time
from collections.abc import Callable, Iterator

from linker.review.interface import Candidate

Key = tuple[str, str]  # seed and document; the seed is empty if all seeds describe one topic

SECONDS = 600.0  # an idle reader's document goes to the next reader after this many seconds


class Reservations:
    """The document each holder has open, and since when. A holder is one reader: a session of the page, or a name.

    An expired reservation stays until somebody else asks, so that a reader who comes back late finds it.
    """

    def __init__(
        self,
        key: Callable[[Candidate], Key],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`key` gives a candidate's seed and document; `clock` returns seconds."""
        self._key, self._clock = key, clock
        self._held: dict[str, tuple[Candidate, float]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._held))

    def get(self, holder: str) -> Candidate | None:
        """Return a holder's open candidate and renew its reservation, or None."""
        if holder not in self._held:
            return None
        candidate, _ = self._held[holder]
        self.put(holder, candidate)
        return candidate

    def put(self, holder: str, candidate: Candidate) -> None:
        """Reserve a candidate for a holder."""
        self._held[holder] = candidate, self._clock()

    def of(self, key: Key) -> Candidate | None:
        """Return the open candidate with this key, whoever holds it, or None."""
        return next((held for held, _ in self._held.values() if self._key(held) == key), None)

    def take_back(self, holder: str) -> Candidate | None:
        """End a holder's reservation and return its candidate, or None."""
        candidate, _ = self._held.pop(holder, (None, 0.0))
        return candidate

    def release(self, key: Key, holder: str | None = None) -> None:
        """End all reservations of a judged candidate, or only that of one holder."""
        for name, (held, _) in list(self._held.items()):
            if self._key(held) == key and holder in (None, name):
                del self._held[name]

    def expired(self) -> Candidate | None:
        """End the reservation that expired earliest, and return its candidate, or None."""
        holder, (candidate, since) = min(
            self._held.items(), key=lambda entry: entry[1][1], default=("", (None, self._clock()))
        )
        if candidate is None or self._clock() - since < SECONDS:
            return None
        del self._held[holder]
        return candidate

    def seeds(self, holder: str) -> frozenset[str]:
        """Return the seeds of other holders' open candidates that have not expired."""
        now = self._clock()
        return frozenset(
            held.seed
            for other, (held, since) in self._held.items()
            if other != holder and now - since < SECONDS
        )

    def others(self, holder: str) -> int:
        """Return how many candidates other holders have open."""
        return len({self._key(held) for other, (held, _) in self._held.items() if other != holder})

    def keep(self, is_needed: Callable[[Candidate], bool]) -> None:
        """End the reservations of candidates that are no longer wanted."""
        self._held = {holder: held for holder, held in self._held.items() if is_needed(held[0])}
