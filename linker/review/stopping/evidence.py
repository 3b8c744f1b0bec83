"""The combined evidence of a review's random reads on the number of relevant documents, at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import lgamma

from linker.review.stopping.bounds import least

FIRST = 0.75  # share of the stake bet on no find in any audit
AGAIN = 1 / 6  # ratio of the stake on no find after one more find
KEPT = 0.1  # minimum share of a bet kept if a control is relevant
HEDGE = (0.25, 0.5, 0.75, 0.9)  # shares of a bet that the other bets keep after a find
SHARE = (1 - FIRST / (1 - AGAIN)) / len(HEDGE)  # share of the stake on each of them


@dataclass(frozen=True, slots=True)
class Streak:
    """A run of random reads without a find: how many were unread and found before, and the number of reads."""

    unread: int
    found: int
    reads: int
    audit: bool = True

    def bet(self, total: int, kept: float) -> float:
        """Return the logarithm of a bet on no find by now, had `total` documents been relevant in all.

        A miss, whose probability is 1 − q at most, multiplies it by (1 − kept q) / (1 − q), a find by `kept`.
        """
        relevant = max(total - self.found, 0)
        if relevant > self.unread - self.reads:
            return math.inf
        rest = _log_falling(self.unread - kept * relevant, self.reads)
        return rest - _log_falling(self.unread - relevant, self.reads)


def _log_falling(z: float, n: int) -> float:
    """Return the logarithm of z (z − 1) … (z − n + 1)."""
    return math.log(z) if n == 1 else lgamma(z + 1) - lgamma(z - n + 1)


class Bets:
    """Bets against "`total` or more documents are relevant", at each document drawn from all unread ones.

    If that is so, a document drawn while `unread` are left and r are found is relevant with probability q ≥ (total −
    r) / unread, so none of these bets gains on average, whatever was read in between: audits, random reads
    interspersed in a review and earlier random screenings all count. The probability that the stake ever reaches 1/α
    is at most α (Ville), so one may look after every document.

    An audit stakes everything on finding nothing, and does so again after each find: with FIRST, it needs at most a
    tenth more reads than the exact tail of a sample of fixed size. A control, which may come early, bets so as to
    separate `total` best from the share `target` of it, so that expected finds cost little.
    """

    def __init__(self, alpha: float, target: float) -> None:
        self.alpha, self.target = alpha, target
        self._runs: list[Streak] = []
        self._since = self._finds = 0  # first run after an audit's last find; number of such finds
        self._hits: list[int] = []  # numbers found before each relevant control

    def take(self, unread: int, found: int, *, relevant: bool, audit: bool = True) -> None:
        """Process a random read; `unread` and `found` are the numbers before it."""
        if relevant and audit:
            self._finds, self._since = self._finds + 1, len(self._runs)
            return
        if relevant:
            self._hits.append(found)
            return
        last = self._runs[-1] if len(self._runs) > self._since else None
        if last and (last.unread - last.reads, last.found, last.audit) == (unread, found, audit):
            self._runs[-1] = replace(last, reads=last.reads + 1)
        else:
            self._runs.append(Streak(unread, found, 1, audit))

    def most(self, unread: int, found: int, more: int = 0, top: int | None = None) -> int:
        """Return how many documents may be relevant in all, at the confidence 1 − alpha; `top` if that is less.

        `unread` and `found` are the current numbers; `more`: after that many further random reads without a find.
        """
        then, step, high = Streak(unread, found, more), 1, found + unread - more
        high = high if top is None else max(min(top, high), found)
        while high - step >= found and self._refuted(high - step + 1, then):  # most reads hardly lower it
            high, step = high - step, 2 * step
        return least(lambda total: self._refuted(total + 1, then), max(high - step + 1, found), high)

    def price(self, unread: int, found: int, short: int) -> int:
        """Return how many further random reads without a find show that fewer than `short` relevant ones are
        unread."""
        enough = max(unread - short + 1, 0)
        return least(lambda n: self._refuted(found + short, Streak(unread, found, n)), 0, enough)

    def _refuted(self, total: int, then: Streak) -> bool:
        return self.log(total, then) >= -math.log(self.alpha) - 1e-9

    def log(self, total: int, then: Streak | None = None) -> float:
        """Return the logarithm of the stake now, or after the reads `then`; it grows with `total`."""
        runs = [*self._runs, then] if then and then.reads else self._runs
        alone = sum(run.bet(total, 0.0) for run in runs[self._since :] if run.audit)
        strewn = sum(run.bet(total, self._kept(total, run.found)) for run in runs if not run.audit)
        if math.isinf(alone) or math.isinf(strewn):
            return math.inf
        strewn += sum(math.log(self._kept(total, found)) for found in self._hits)
        unused = AGAIN ** (self._finds + 1) * FIRST / (1 - AGAIN)
        parts = [math.log(FIRST) + self._finds * math.log(AGAIN) + alone + strewn, math.log(unused) + strewn]
        for kept in HEDGE:
            bet = sum(run.bet(total, kept) for run in runs)
            if math.isinf(bet):
                return math.inf
            parts.append(math.log(SHARE) + (self._finds + len(self._hits)) * math.log(kept) + bet)
        top = max(parts)
        return top + math.log(math.fsum(math.exp(part - top) for part in parts))

    def _kept(self, total: int, found: int) -> float:
        """Return the share a control's bet keeps if it is relevant: the ratio of those left by either number."""
        return max((self.target * total - found) / (total - found), KEPT) if total > found else KEPT
