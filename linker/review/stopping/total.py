"""How many documents are relevant in all: an estimate, with an interval, from how fast relevant documents become rarer.

The estimate is based on how many relevant documents were left in reviews of other topics when finds were as frequent
as in this one: quantiles of the logarithm of (left + 1) / (found + 1), linear in the log odds of a find now and in the
logarithm of the number found (Koenker & Bassett, 1978, "Regression quantiles"). They were fitted to simulated reviews
(benchmarks/review_total.py) in which at most a tenth of the documents were relevant. docs/stopping.md says how often
the interval was correct on topics to which it was not fitted. The estimate cannot account for documents that resemble
none of those found.

The interval leaves out a hundredth of the reviews below and nine above: its lower end is hardly above the number found
in any case, so more below would not make it much shorter.
"""

import math

from linker.review.interface import Read, TotalEstimate

LEAST = 5  # minimum number of documents found for an estimate
POWER = 3  # the i-th read weighs i ** POWER, so roughly the last quarter of the reads dominates
# Coefficients at these quantiles: constant, log odds that a document read is relevant, log of the number found.
QUANTILES = {0.01: (0.125, 0.323, -0.876), 0.5: (2.54, 0.622, -0.83), 0.91: (4.308, 0.718, -0.975)}


class FindHistory:
    """The finds of a review in the order of reading; of searches and audits, only the finds count."""

    def __init__(self) -> None:
        self.reads = self.found = 0
        self._weighed, self._imported = 0, False

    def take(self, read: Read) -> None:
        """Count one more read."""
        self._imported |= read.phase == "prior"
        if read.relevant or read.phase == "queue":
            self.reads, self.found = self.reads + 1, self.found + read.relevant
            self._weighed += read.relevant * self.reads**POWER

    @property
    def odds(self) -> float:
        """The current log odds that a read is relevant, from the reads so far and one half-relevant pseudo-read."""
        n = self.reads
        # the total weight of the reads: the sum of the cubes up to n³, scaled so that the last read weighs 1
        whole = (n * (n + 1)) ** 2 / (4 * n**POWER)
        rate = (self._weighed / n**POWER + 0.5) / (whole + 1)
        return math.log(rate / (1 - rate))

    def total(self, unread: int) -> TotalEstimate | None:
        """Return how many are relevant in all, with at most `unread` left; None if few were found, or any imported."""
        if not unread:
            return TotalEstimate(self.found, self.found, self.found)
        if self._imported or self.found < LEAST:
            return None
        known = 1.0, self.odds, math.log(self.found)
        ratios = [math.exp(sum(a * b for a, b in zip(q, known, strict=True))) for q in QUANTILES.values()]
        left = sorted(min(max((self.found + 1) * ratio - 1, 0), unread) for ratio in ratios)
        low, likely, high = math.floor(left[0]), round(left[1]), math.ceil(left[2])
        return TotalEstimate(self.found + low, self.found + likely, self.found + high)


def by_name(total: TotalEstimate | None) -> dict[str, int | None]:
    """Return an estimate as JSON values."""
    low, likely, high = (total.low, total.likely, total.high) if total else (None, None, None)
    return {"total": likely, "total_low": low, "total_high": high}
