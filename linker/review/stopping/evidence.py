"""What all random reads of a review say together of how many relevant documents there are, at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import lgamma

from linker.review.stopping.bounds import least

FIRST = 0.75  # of the stake: on no find in any random read
AGAIN = 1 / 6  # of what was staked on no find before, staked on none after one more
SHARES = (0.75, 0.5, 0.25, 0.1)  # of what can be bet at each read, by bets that survive finds
HEDGE = (1 - FIRST / (1 - AGAIN)) / len(SHARES)  # of the stake, on each of them


@dataclass(frozen=True, slots=True)
class Run:
    """Random reads without a find, one right after the other: how many were unread and found before, and reads."""

    unread: int
    found: int
    reads: int

    def bet(self, total: int, share: float) -> float:
        """Return the logarithm of what a bet on no find has become, had `total` documents been relevant in all.

        `share` is what is bet of what can be: a miss (probability 1 − q at most) multiplies by 1 + share q / (1 − q).
        """
        relevant = max(total - self.found, 0)
        if relevant > self.unread - self.reads:
            return math.inf
        rest = self.unread - (1 - share) * relevant
        return _log_falling(rest, self.reads) - _log_falling(self.unread - relevant, self.reads)


def _log_falling(z: float, n: int) -> float:
    """Return the logarithm of z (z − 1) … (z − n + 1)."""
    return math.log(z) if n == 1 else lgamma(z + 1) - lgamma(z - n + 1)


class Evidence:
    """Bets against "`total` or more documents are relevant", at each document that was drawn from all unread ones.

    Where that is so, a document drawn while `unread` are left and r are found is relevant with the probability
    q ≥ (total − r) / unread, so that none of these bets gains in the mean, whatever was read in between: audits, random
    reads strewn into a review and random screenings from before it all count. That the stake ever grows to 1/α
    has at most the probability α (Ville), so one may look after every document. FIRST makes the reads that it takes
    without a find at most a tenth more than those of the exact tail of a sample whose size was fixed.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self._runs: list[Run] = []
        self._since = self._finds = 0  # the first run behind the last find; finds

    def take(self, unread: int, found: int, *, relevant: bool) -> None:
        """Take in a random read; `unread` and `found` are the numbers before it."""
        if relevant:
            self._finds, self._since = self._finds + 1, len(self._runs)
            return
        last = self._runs[-1] if len(self._runs) > self._since else None
        if last and (last.unread - last.reads, last.found) == (unread, found):
            self._runs[-1] = replace(last, reads=last.reads + 1)
        else:
            self._runs.append(Run(unread, found, 1))

    def most(self, unread: int, found: int, more: int = 0, top: int | None = None) -> int:
        """Return how many documents may be relevant in all, at the confidence 1 − alpha; `top` if that is less.

        `unread` and `found` are the numbers of now; `more`: after so many further random reads without a find.
        """
        then, step, high = Run(unread, found, more), 1, found + unread - more
        high = high if top is None else max(min(top, high), found)
        while high - step >= found and self._refuted(high - step + 1, then):  # most reads lower it by little
            high, step = high - step, 2 * step
        return least(lambda total: self._refuted(total + 1, then), max(high - step + 1, found), high)

    def price(self, unread: int, found: int, short: int) -> int:
        """Return how many further random reads without a find show that less than `short` relevant ones are unread."""
        enough = max(unread - short + 1, 0)
        return least(lambda n: self._refuted(found + short, Run(unread, found, n)), 0, enough)

    def _refuted(self, total: int, then: Run) -> bool:
        return self.log(total, then) >= -math.log(self.alpha) - 1e-9

    def log(self, total: int, then: Run | None = None) -> float:
        """Return the logarithm of the stake by now, or after the reads `then`; it grows with `total`."""
        runs = [*self._runs, then] if then and then.reads else self._runs
        alone = sum(run.bet(total, 1.0) for run in runs[self._since :])
        if math.isinf(alone):
            return math.inf
        unused = AGAIN ** (self._finds + 1) * FIRST / (1 - AGAIN)
        parts = [math.log(FIRST) + self._finds * math.log(AGAIN) + alone, math.log(unused)]
        for share in SHARES:
            bet = sum(run.bet(total, share) for run in runs)
            if math.isinf(bet):
                return math.inf
            parts.append(math.log(HEDGE) + self._finds * math.log(1 - share) + bet)
        top = max(parts)
        return top + math.log(math.fsum(math.exp(part - top) for part in parts))
