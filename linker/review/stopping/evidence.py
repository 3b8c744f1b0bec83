"""Combine a review's random reads into evidence on the number of relevant documents, which is valid at any time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lgamma

from linker.review.stopping.bounds import least

FIRST = 0.75  # share of the stake bet on no find in any audit
AGAIN = 1 / 6  # each find in an audit multiplies the stake on "no further find" by this factor
KEPT = 0.1  # minimum share of its stake that a bet keeps if a control is relevant
# the front's share of the unread documents, and its assumed share of the relevant documents left
FRONT, HALF = 0.05, 0.5
BLOCK = 25  # number of audited documents drawn from anywhere, and then from the front
# the other bets, by the share of its stake that each keeps after a relevant document
HEDGE = (0.25, 0.5, 0.75, 0.9)
SHARE = (1 - FIRST / (1 - AGAIN)) / len(HEDGE)  # share of the whole stake on each of the other bets


@dataclass(frozen=True, slots=True)
class Streak:
    """Consecutive random reads without a find: the numbers unread and found before them, and the number of reads.

    share: 1 if they were drawn from all unread documents. Otherwise, they were drawn from the front, `unread` counts
    the documents there, and the front is assumed to contain at least this share of the relevant documents left.
    """

    unread: int
    found: int
    reads: int
    audit: bool = True
    share: float = 1.0

    def bet(self, total: int, kept: float) -> float:
        """Return the log capital of a bet against `total` relevant documents in all, if none was found so far.

        With q, the probability that the next one is relevant (at least, under this hypothesis), an irrelevant document
        multiplies the capital by (1 − kept q) / (1 − q), a relevant one by `kept`.
        """
        relevant = math.ceil(self.share * max(total - self.found, 0))
        if relevant > self.unread - self.reads:
            return math.inf
        rest = _log_falling(self.unread - kept * relevant, self.reads)
        return rest - _log_falling(self.unread - relevant, self.reads)


def front_of(unread: int) -> int:
    """Return the size of the front: the unread documents at the top of the order."""
    return math.ceil(FRONT * unread)


def front_reads(reads: int) -> int:
    """Return how many of the first `reads` documents of an audit are drawn from the front."""
    whole, rest = divmod(reads, 2 * BLOCK)
    return whole * BLOCK + max(rest - BLOCK, 0)


def _log_falling(z: float, n: int) -> float:
    """Return the logarithm of z (z − 1) … (z − n + 1)."""
    return math.log(z) if n == 1 else lgamma(z + 1) - lgamma(z - n + 1)


class Bets:
    """Bets against "`total` or more documents are relevant", at each document drawn from all unread ones.

    If that is so, a document drawn while `unread` are left and r are found is relevant with probability q ≥ (total −
    r) / unread, so none of these bets gains on average, whatever was read in between: audits, random reads
    interspersed in a review and earlier random screenings all count. The probability that the capital ever reaches 1/α
    is at most α (Ville's inequality), so the bound may be read off after every document.

    An audit stakes everything on finding nothing, and does so again after each relevant document: with FIRST, it needs
    at most a tenth more reads than the exact tail of a sample of fixed size. A control, which may come early, bets so
    as to separate `total` best from `target` times `total`, so that relevant documents that were expected cost little.

    The evidence `by_order` includes documents drawn from the front: the bound then also assumes, whenever one is drawn
    while `total` or more are relevant, that the front holds half of the relevant ones left. The front is the first
    share FRONT of the unread documents in the order, less those read from it in this audit, so that it shrinks as it is
    read.
    """

    def __init__(self, alpha: float, target: float, *, by_order: bool = False) -> None:
        self.alpha, self.target, self.by_order = alpha, target, by_order
        self._runs: list[Streak] = []
        # index of the first run after the last find in an audit; number of such finds
        self._since = self._finds = 0
        self._front_reads = 0  # reads from the front in this audit, since its last relevant document
        self._hits: list[int] = []  # numbers found before each relevant control

    def take(
        self, unread: int, found: int, *, relevant: bool, audit: bool = True, front: bool = False
    ) -> None:
        """Process a random read, before which `unread` documents were unread and `found` were relevant.

        front: whether it was drawn from the front.
        """
        if relevant and audit:
            self._finds, self._since, self._front_reads = self._finds + 1, len(self._runs), 0
            return
        if relevant:
            self._hits.append(found)
            return
        last = self._runs[-1] if len(self._runs) > self._since else None
        run = Streak(self.front(unread), found, 1, audit, HALF) if front else Streak(unread, found, 1, audit)
        self._front_reads += front
        if last and replace(last, unread=last.unread - last.reads, reads=1) == run:
            self._runs[-1] = replace(last, reads=last.reads + 1)
        else:
            self._runs.append(run)

    def begin_audit(self) -> None:
        """Make the front complete again, for the next audit."""
        self._front_reads = 0

    def front(self, unread: int) -> int:
        """Return how many documents are left of the front in this audit."""
        return max(front_of(unread) - self._front_reads, 0)

    @property
    def is_begun(self) -> bool:
        """Whether there has been a random read."""
        return bool(self._runs or self._hits or self._finds)

    def most(self, unread: int, found: int, more: int = 0, top: int | None = None) -> int:
        """Return an upper bound on all relevant documents at the confidence 1 − alpha; `top` if that is less.

        `unread` and `found` are the current numbers; `more`: after that many irrelevant random reads.
        """
        then, step, high = self._ahead(unread, found, more), 1, found + unread - more
        high = high if top is None else max(min(top, high), found)
        # search downwards from the last bound, which most reads hardly lower
        while high - step >= found and self._refuted(high - step + 1, then):
            high, step = high - step, 2 * step
        return least(lambda total: self._refuted(total + 1, then), max(high - step + 1, found), high)

    def price(self, unread: int, found: int, short: int) -> int:
        """Return how many more random reads without a find show that fewer than `short` relevant ones are unread."""
        enough = max(unread - short + 1, 0)
        return least(lambda n: self._refuted(found + short, self._ahead(unread, found, n)), 0, enough)

    def _ahead(self, unread: int, found: int, more: int) -> tuple[Streak, ...]:
        """Return `more` further random reads without a find; with `by_order`, half of them are from the front."""
        front = min(front_reads(more), self.front(unread)) if self.by_order else 0
        first = Streak(self.front(unread), found, front, share=HALF)
        return tuple(run for run in (first, Streak(unread, found, more - front)) if run.reads)

    def _refuted(self, total: int, then: Sequence[Streak]) -> bool:
        return self.log(total, then) >= -math.log(self.alpha) - 1e-9

    def log(self, total: int, then: Sequence[Streak] = ()) -> float:
        """Return the logarithm of the capital now, or after the reads `then`; it grows with `total`."""
        runs = [*self._runs, *then]
        audits = sum(run.bet(total, 0.0) for run in runs[self._since :] if run.audit)
        strewn = sum(run.bet(total, self._control_share(total, run.found)) for run in runs if not run.audit)
        if math.isinf(audits) or math.isinf(strewn):
            return math.inf
        strewn += sum(math.log(self._control_share(total, finds)) for finds in self._hits)
        unused = AGAIN ** (self._finds + 1) * FIRST / (1 - AGAIN)
        parts = [math.log(FIRST) + self._finds * math.log(AGAIN) + audits + strewn, math.log(unused) + strewn]
        for share in HEDGE:
            bet = sum(run.bet(total, share) for run in runs)
            if math.isinf(bet):
                return math.inf
            parts.append(math.log(SHARE) + (self._finds + len(self._hits)) * math.log(share) + bet)
        top = max(parts)
        return top + math.log(math.fsum(math.exp(part - top) for part in parts))

    def _control_share(self, total: int, finds: int) -> float:
        """Return the share of its stake that a control's bet keeps if the control is relevant."""
        return max((self.target * total - finds) / (total - finds), KEPT) if total > finds else KEPT
