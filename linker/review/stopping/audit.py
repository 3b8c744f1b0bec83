"""The audit: random unread documents, read one after another, and the certificate from all random reads."""

from __future__ import annotations

from linker.review.interface import RANDOM, Read
from linker.review.stopping.evidence import Bets


class Audit:
    """Audits of unread documents, one after another, and the bound from these and all other random reads.

    An audit ends with its first find or after `size` documents; with `until_certified`, when its rule says so.
    Interleaved judgements from the queue do no harm. The bound is updated after every random read, but in an audit
    with a fixed end only there.
    """

    def __init__(self, size: int, alpha: float, target: float, *, until_certified: bool = False) -> None:
        """`size`: documents per audit, 0 for none; `alpha`: the error of the bound; `target`: the recall wanted."""
        self.size, self.until_certified = size, until_certified
        self.evidence = Bets(alpha, target)
        self.count = 0  # audits begun
        self.drawn = 0  # documents in the last one
        self.passed = not size  # whether the last finished audit had no find
        self.total: int | None = None  # upper bound on relevant documents, read and unread
        self.ended = 0  # documents of all audits up to the last finished one
        self.result = (0, 0)  # documents in the last finished audit, and how many were relevant
        self._open = False
        self._taken = 0  # documents of all audits
        self._hits = 0

    def take(self, read: Read, unread: int, found: int) -> None:
        """Process a judgement; `unread` and `found` are the numbers before it."""
        if read.phase in RANDOM:
            self.evidence.take(unread, found, relevant=read.relevant, audit=read.phase == "audit")
        if read.phase == "audit":
            self._take_audited(read)
        if read.phase in RANDOM and (self.until_certified or not self._open):
            self.total = self.evidence.most(unread - 1, found + read.relevant, top=self.total)

    def _take_audited(self, read: Read) -> None:
        if not self._open:
            self._open, self.count = True, self.count + 1
            self.drawn = self._hits = 0
        self.drawn, self._taken = self.drawn + 1, self._taken + 1
        self._hits += read.relevant
        if not self.until_certified and (read.relevant or self.drawn >= self.size):
            self.close(passed=not read.relevant)

    def close(self, *, passed: bool) -> None:
        """End the open audit; `passed`: nothing is left to do."""
        self._open, self.passed, self.ended = False, passed, self._taken
        self.result = self.drawn, self._hits

    @property
    def left(self) -> int:
        """How many documents are left in the open audit or, if none is open, in the next one."""
        return self.size - self.drawn if self._open else self.size

    @property
    def is_empty(self) -> bool:
        """Whether the last audit was read in full and found nothing."""
        return self.count > 0 and self.drawn >= self.size and not self._hits
