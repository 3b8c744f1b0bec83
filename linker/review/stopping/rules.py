"""The stopping rules; `linker.review.stopping.make` creates them by name."""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from linker.review.interface import Read
from linker.review.stopping.bounds import controls_to_reach, short_of, urn_gap, urn_tail
from linker.review.stopping.rule import Estimate, Rule, RuleOptions, number, percent
from linker.review.wording import say, say_many

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


# Parameters of `weight`, chosen on recorded reviews: w is 160 for a target recall of .8, 70 for .9, 30 for .95.
SCALE, POWER, LEAST_WEIGHT, MOST_WEIGHT = 1250, 1.25, 20.0, 160.0


def weight(target: float, scale: float = SCALE) -> float:
    """Return the urn's w for a target recall; it falls as the target rises, since the last documents stand out less."""
    return min(max(float(round(scale * (1 - target) ** POWER)), LEAST_WEIGHT), MOST_WEIGHT)


@dataclass(frozen=True, slots=True)
class UrnOptions(RuleOptions):
    """`w`: a relevant document is this many times as likely to come next as any other; 0: see `weight`.

    `gap`: the minimum number of irrelevant documents in a row before stopping.
    """

    POSITIVE: ClassVar = ("gap",)

    w: float = 0.0
    gap: int = 50

    def __post_init__(self) -> None:
        """Raise ValueError for a value outside its range."""
        RuleOptions.__post_init__(self)
        if self.w < 0:
            raise ValueError(f"w = {self.w:g}: choose a number above 0, or 0 to derive it from the target")


class Urn(Rule[UrnOptions]):
    """Biased urn: stop when a gap this long would be improbable if the target were missed (the default).

    After r finds and a gap of n, M = unread + n; if the target were missed, K = ⌊r/τ⌋ + 1 − r relevant documents would
    be left. Stop when Wallenius' probability of no find among n draws is below α, and n ≥ `gap`. This relies on an
    assumption about the ranking, and is not a proof.
    """

    kind = UrnOptions

    def __init__(self, population: int, target: float, options: UrnOptions | None = None) -> None:
        """See `Rule`."""
        super().__init__(population, target, options)
        self.w = self.options.w or weight(target)
        self._renew()

    def _take(self, read: Read) -> None:
        super()._take(read)
        if read.relevant:
            self._renew()
        elif read.phase != "queue":  # M has shrunk by one, so the gap can only be shorter
            while self._long and self._is_improbable(self._long - 1):
                self._long -= 1

    def _renew(self) -> None:
        """Find the gap for the current M and K; irrelevant documents in the queue change neither."""
        self._short = short_of(self.counts.found, self.target)
        self._long = urn_gap(self.counts.unread + self.counts.gap, self._short, self.w, self.options.alpha)

    def _is_improbable(self, gap: int) -> bool:
        size = self.counts.unread + self.counts.gap
        return urn_tail(size, self._short, gap, self.w) < self.options.alpha

    @property
    def wanted(self) -> int:
        """The gap that suffices to stop."""
        return max(self._long, self.options.gap)

    def _ahead(self) -> int:
        return max(min(self.wanted - self.counts.gap, self.counts.unread), 0)

    def _estimate(self) -> Estimate:
        gap, target = self.counts.gap, percent(self.target)
        if gap < self.wanted:
            reason = say_many(
                "Read on: after %(num)s more irrelevant document, a recall of %(target)s will be estimated as "
                "reached.",
                "Read on: after %(num)s more irrelevant documents in a row, a recall of %(target)s will be estimated "
                "as reached.",
                self.wanted - gap, target=target,
            )  # fmt: skip
            return Estimate(False, reason)
        reason = say_many(
            "Estimated: the target recall of %(target)s is reached, because %(num)s irrelevant document would be "
            "unlikely otherwise (p < %(alpha)s).",
            "Estimated: the target recall of %(target)s is reached, because a run of %(num)s irrelevant documents "
            "would be unlikely otherwise (p < %(alpha)s).",
            gap, target=target, alpha=number(self.options.alpha),
        )  # fmt: skip
        return Estimate(True, reason)


class Hypergeometric(Rule[RuleOptions]):
    """Callaghan & Müller-Hansen (2020): treat the last n reads as if drawn at random, for every n.

    The last n reads, x of them relevant, are taken as drawn from an urn that also holds the unread documents; if the
    target were missed, at least K = ⌊r/τ⌋ + 1 − (r − x) documents in it would be relevant. Stop when the smallest P(at
    most x) over all n is below α. Only urns that begin right after a relevant document (or at the first document) can
    have the smallest, and none begins before the imported documents. One judgement multiplies each of these
    probabilities by at least 1 − K/unread, so after most judgements no urn needs to be examined: `_slack` is the
    logarithmic margin before one may fall below α.
    """

    kind = RuleOptions

    def __init__(self, population: int, target: float, options: RuleOptions | None = None) -> None:
        """See `Rule`."""
        super().__init__(population, target, options)
        # number of reads before each urn, and of relevant documents before the first urn
        self._starts, self._before = [0], 0
        self._look()

    def _take(self, read: Read) -> None:
        unread, short, found = self.counts.unread, short_of(self.counts.found, self.target), self.counts.found
        super()._take(read)
        if read.phase == "prior":  # urns begin after imported documents
            self._starts, self._before = [self.counts.read], self.counts.found
            self._slack = -math.inf
        elif read.relevant:
            self._starts.append(self.counts.read)
        # a relevant document adds one to K or, rarely, more; if more, the bound in the class docstring does not hold
        more = read.relevant and short_of(found + 1, self.target) > short
        most = short + found
        self._slack += math.log1p(-most / unread) if most < unread and not more else -math.inf
        if self._slack <= 0:
            self._look()

    def _look(self) -> None:
        counts = self.counts
        short = short_of(counts.found, self.target)
        if short > counts.unread:  # more would have to be missing than are unread
            self.p = 0.0
        else:
            starts = np.asarray(self._starts)
            x = counts.found - self._before - np.arange(len(starts))
            self.p = least_tail(x, counts.population - starts, short + x, counts.read - starts)
        self._slack = math.log(self.p / self.options.alpha) if self.p else -math.inf

    def _estimate(self) -> Estimate:
        if self._slack >= 0:
            reason = say(
                "Read on: a recall below %(target)s is not yet improbable.", target=percent(self.target)
            )
            return Estimate(False, reason)
        reason = say(
            "Estimated: the target recall of %(target)s is reached, because so few relevant ones among the last "
            "documents would be unlikely otherwise (p = %(p)s).",
            target=percent(self.target), p=Decimal(f"{self.p:.3g}"),
        )  # fmt: skip
        return Estimate(True, reason)


def least_tail(x: Ints, size: Ints, relevant: Ints, drawn: Ints) -> float:
    """Return the least of the hypergeometric tails P(at most x), or .5 if none is smaller.

    The arrays have equal length. A tail with x at or above the mean is at least one half, so it is not computed.
    """
    from scipy.special import gammaln

    below = x * size < drawn * relevant
    if not below.any():
        return 0.5
    k, all_, good, draws = (np.asarray(a[below], dtype=np.float64) for a in (x, size, relevant, drawn))

    def log_choose(n: Floats, m: Floats) -> Floats:
        return np.asarray(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))

    log = log_choose(good, k) + log_choose(all_ - good, draws - k) - log_choose(all_, draws)
    term = total = np.ones_like(k)
    # each term follows from the one before; below the mean, terms only shrink
    while (term > 1e-15 * total).any():
        term = term * (k * (all_ - good - draws + k) / ((good - k + 1) * (draws - k + 1)))
        k, total = k - 1, total + term
    return min(float(np.exp(log + np.log(total)).min()), 0.5)


@dataclass(frozen=True, slots=True)
class ControlOptions(RuleOptions):
    """`controls`: the number of random relevant documents drawn first; 0: as few as the target allows."""

    controls: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for a value outside its range."""
        RuleOptions.__post_init__(self)
        if self.controls < 0:
            raise ValueError(
                f"controls = {self.controls}: choose a number of documents, or 0 for as few as possible"
            )


class Controls(Rule[ControlOptions]):
    """QBCB (Lewis, Yang & Frieder, 2021): stop when the ranking has reached enough random relevant documents.

    To get these, random documents are first judged in phase "control" until `controls` are relevant. Their labels are
    hidden from the learner; when the queue reaches a relevant one by itself, pass it to this rule again with
    `reached`. Once enough are reached (`controls_to_reach`), the target is certified. Raises ValueError if so few
    controls never suffice.
    """

    kind = ControlOptions

    def __init__(self, population: int, target: float, options: ControlOptions | None = None) -> None:
        """See `Rule`."""
        super().__init__(population, target, options)
        alpha = self.options.alpha
        fewest = math.ceil(math.log(alpha) / math.log(target)) if target < 1 else 0
        if not fewest:
            raise ValueError("target = 1: controls certify a target below 1 only")
        self.size = self.options.controls or fewest
        self.wanted = controls_to_reach(self.size, target, alpha)
        if not self.wanted:
            raise ValueError(f"controls = {self.size}: a target of {target:g} needs at least {fewest}")
        self.drawn = self.reached = 0

    def _take(self, read: Read) -> None:
        if read.reached:
            self.reached += 1
            return
        self.drawn += read.phase == "control" and read.relevant
        super()._take(read)

    @property
    def certified(self) -> float | None:
        """The certified recall (see `Rule`): the target, once enough controls have been reached."""
        return max(super().certified or 0, self.target) if self.reached >= self.wanted else super().certified

    def _estimate(self) -> Estimate:
        if self.drawn < self.size:
            reason = say(
                "First judge random documents until %(size)s of them are relevant (%(drawn)s so far).",
                size=self.size, drawn=self.drawn,
            )  # fmt: skip
            return Estimate(False, reason)
        counted = {"reached": self.reached, "size": self.size, "wanted": self.wanted}
        if self.reached < self.wanted:
            reason = say(
                "Read on: %(reached)s of %(size)s random relevant documents were reached by the ranking; %(wanted)s "
                "are needed.",
                **counted,
            )
            return Estimate(False, reason)
        reason = say(
            "Certified: %(reached)s of %(size)s random relevant documents were reached by the ranking; %(wanted)s "
            "certify the target recall of %(target)s, if all verdicts are right.",
            target=percent(self.target), **counted,
        )  # fmt: skip
        return Estimate(True, reason)
