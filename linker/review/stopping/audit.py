"""The audit: random documents of the unread, read one after another, and the certificate of all random reads."""

from __future__ import annotations

from linker.review.interface import RANDOM, Read
from linker.review.stopping.evidence import Bets


class Audit:
    """Audits of the unread, one after another, and what they and all other random reads certify.

    An audit is over with its first find or after `size` documents; with `until_certified`, when its rule says so.
    Judgements of the queue that fall in between do no harm. The bound is told after every random read, but
    of an audit that has an end only there.
    """

    def __init__(self, size: int, alpha: float, target: float, *, until_certified: bool = False) -> None:
        """`size`: documents per audit, 0 for none; `alpha`: the error of the bound; `target`: the recall wanted."""
        self.size, self.until_certified = size, until_certified
        self.evidence = Bets(alpha, target)
        self.count = 0  # audits begun
        self.drawn = 0  # documents in the last one
        self.passed = not size  # the last audit that ended had no find
        self.total: int | None = None  # the most relevant documents that there are, read and unread
        self.ended = 0  # documents of all audits up to the end of the last one that ended
        self.result = (0, 0)  # documents of the last audit that ended, and relevant ones among them
        self._open = False
        self._taken = 0  # documents of all audits
        self._hits = 0

    def take(self, read: Read, unread: int, found: int) -> None:
        """Take in a judgement; `unread` and `found` are the numbers before it."""
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
        """End the open audit; `passed`: it leaves nothing to do."""
        self._open, self.passed, self.ended = False, passed, self._taken
        self.result = self.drawn, self._hits

    @property
    def left(self) -> int:
        """How many documents the open audit still has to read; the next one, where none is open."""
        return self.size - self.drawn if self._open else self.size

    @property
    def is_empty(self) -> bool:
        """Whether the last audit has read as many documents as one reads, and found nothing."""
        return self.count > 0 and self.drawn >= self.size and not self._hits
