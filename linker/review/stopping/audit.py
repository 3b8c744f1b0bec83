"""The audit: random documents of the unread, and the bound on what is left that follows from them."""

from __future__ import annotations

from linker.review.interface import Read
from linker.review.stopping.bounds import most_left, most_left_anytime


class Audit:
    """Audits of the unread, one after another; the i-th may err with probability α/2^i, all together with α.

    At the end: an audit is over with its first find or after `size` documents. K_U then comes from the documents
    before the find, which is exact for a sample that ends with it: P(no find in so many). Judgements of the queue that
    fall in between do no harm: they can only lower the number of relevant documents that are left, so the bound holds
    all the more.

    At any time: the prior-posterior ratio holds after every document, and a find ends nothing; a judgement of the
    queue does, since the documents drawn would no longer come from one population.
    """

    def __init__(self, size: int, alpha: float, *, anytime: bool = False) -> None:
        """`size`: documents per audit, 0 for none; `alpha`: the error allowed to all audits together."""
        self.size, self.alpha, self.anytime = size, alpha, anytime
        self.count = 0  # audits begun
        self.drawn = 0  # documents in the last one
        self.passed = not size  # the last audit that ended had no find
        self.total: int | None = None  # the most relevant documents that there are, read and unread
        self.ended = 0  # documents of all audits up to the end of the last one that ended
        self.result = (0, 0)  # documents of the last audit that ended, and relevant ones among them
        self._open = False
        self._taken = 0  # documents of all audits
        self._unread = self._found = self._hits = self._left = 0

    def take(self, read: Read, unread: int, found: int) -> None:
        """Take in a judgement; `unread` and `found` are the numbers before it."""
        if read.phase != "audit":
            self._open = self._open and not self.anytime
            return
        if not self._open:
            self._begin(unread, found)
        self.drawn, self._taken = self.drawn + 1, self._taken + 1
        self._hits += read.relevant
        if self.anytime:
            self._look()
        elif read.relevant or self.drawn >= self.size:
            self._end(read, found)

    def _begin(self, unread: int, found: int) -> None:
        self._open, self.count = True, self.count + 1
        self.drawn = self._hits = 0
        self._unread, self._found, self._left = unread, found, unread

    def _look(self) -> None:
        now = most_left_anytime(self._unread, self.drawn, self._hits, self.error)
        self._left = min(self._left, now)
        self._bound(self._found + self._left)

    def _end(self, read: Read, found: int) -> None:
        self._bound(found + most_left(self._unread, self.drawn - read.relevant, 0, self.error))
        self.close(passed=not read.relevant)

    def close(self, *, passed: bool) -> None:
        """End the open audit; `passed`: it leaves nothing to do."""
        self._open, self.passed, self.ended = False, passed, self._taken
        self.result = self.drawn, self._hits

    def _bound(self, total: int) -> None:
        self.total = total if self.total is None else min(self.total, total)

    @property
    def error(self) -> float:
        """The error allowed to the open audit, or to the next one where none is open."""
        return float(self.alpha / 2 ** (self.count + (not self._open)))

    @property
    def left(self) -> int:
        """How many documents the open audit still has to read; the next one, where none is open."""
        return self.size - self.drawn if self._open else self.size

    @property
    def is_empty(self) -> bool:
        """Whether the last audit has read as many documents as one reads, and found nothing."""
        return self.count > 0 and self.drawn >= self.size and not self._hits
