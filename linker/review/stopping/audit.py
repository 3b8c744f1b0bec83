"""The audit, which reads random unread documents one after another, and the certificates from all random reads."""

import math

from linker.review.interface import AUDITED, RANDOM, Read
from linker.review.stopping.evidence import BLOCK, FRONT, HALF, Bets

DOUBT = 0.1  # p-value below which relevant documents contradict the assumption of `by_order`


class Audit:
    """Audits of unread documents, one after another, and the bound from these and all other random reads.

    An audit ends with its first relevant document or after `size` documents. Judgements from the queue may come in
    between. The bounds are updated after every random read, but in an audit only at its end. With `by_order`, half
    of an audit's documents come from the front, the top of the order (see `Bets`).
    """

    def __init__(self, size: int, alpha: float, target: float, *, by_order: bool = False) -> None:
        """`size`: documents per audit, 0 for none; `alpha`: the error of the bound; `target`: the recall wanted."""
        self.size, self.by_order = size, by_order
        self.evidence = Bets(alpha, target)
        self.order_evidence = Bets(alpha, target, by_order=True)
        self.total_by_order: int | None = None  # like `total`, from `order_evidence`
        # numbers of audited documents, and of relevant ones among them: from the front, and from all unread ones
        self.front, self.anywhere = [0, 0], [0, 0]
        self._front_before = 0  # documents from the front of the order, in all audits but the latest
        self.count = 0  # audits begun
        self.drawn = 0  # documents drawn in the latest audit
        self.passed = not size  # whether the last finished audit found no relevant document
        self.total: int | None = None  # upper bound on relevant documents, read and unread
        self.ended = 0  # documents of all audits up to the last finished one
        # Documents in the last finished audit, how many were relevant, and how many came from the front.
        self.result = (0, 0, 0)
        self._open = False
        self._taken = 0  # documents of all audits
        self._hits = 0

    def take(self, read: Read, unread: int, found: int) -> None:
        """Process a judgement; `unread` and `found` are the numbers of documents before it."""
        if read.phase not in RANDOM and read.phase != "front":
            return
        if read.phase in AUDITED and not self._open:
            self._open, self.count = True, self.count + 1
            self.drawn = self._hits = 0
            self._front_before = self.front[0]
            self.order_evidence.begin_audit()
        if read.phase in RANDOM:
            for evidence in (self.evidence, self.order_evidence):
                evidence.take(unread, found, relevant=read.relevant, audit=read.phase == "audit")
        else:
            self.order_evidence.take(unread, found, relevant=read.relevant, front=True)
        if read.phase in AUDITED:
            self._take_audited(read)
        if not self._open:
            now = unread - 1, found + read.relevant
            if self.evidence.is_begun:
                self.total = self.evidence.most(*now, top=self.total)
            if self.front[0]:
                self.total_by_order = self.order_evidence.most(*now, top=self.total_by_order)

    def _take_audited(self, read: Read) -> None:
        self.drawn, self._taken = self.drawn + 1, self._taken + 1
        self._hits += read.relevant
        counts = self.front if read.phase == "front" else self.anywhere
        counts[:] = counts[0] + 1, counts[1] + read.relevant
        if read.relevant or self.drawn >= self.size:
            self._open, self.passed, self.ended = False, not read.relevant, self._taken
            self.result = self.drawn, self._hits, self.front[0] - self._front_before

    @property
    def from_front(self) -> bool:
        """Whether the audit's next document comes from the front of the order (if any of the front is unread)."""
        return self.by_order and self._open and self.drawn // BLOCK % 2 == 1

    @property
    def is_contradicted(self) -> bool:
        """Whether the draws from all unread documents found too many relevant ones for the assumption to hold.

        A document from the front should be relevant at least HALF / FRONT times as often as one from anywhere. Given
        the sum of both, the number of relevant documents from anywhere is then bounded by a binomial distribution.
        """
        (front, inside), (anywhere, outside) = self.front, self.anywhere
        if not front or not outside:
            return False
        share, finds = anywhere / (anywhere + front * HALF / FRONT), inside + outside
        terms = (
            math.comb(finds, k) * share**k * (1 - share) ** (finds - k) for k in range(outside, finds + 1)
        )
        return math.fsum(terms) < DOUBT

    @property
    def left(self) -> int:
        """How many documents are left in the open audit or, if none is open, in the next one."""
        return self.size - self.drawn if self._open else self.size
