"""How many links the seeds in a review of pairs still have: a sum of probabilities that are fitted to the reads so far.

Each read says whether a seed's candidate with some value (standard deviations, or log odds of P(link)) at some rank was
a link, and whether the seed already had one. A logistic regression on these, from a prior that a few dozen reads
outweigh, gives each unread candidate a probability. Their sum is the number of links left, with the deviation of the
sum and the standard error of the fit (delta method). From rank FALLS_FROM of a seed's list on, or from its next
candidate, the probability falls at least with the power of the rank with which links became rarer among the reads: the
model alone would give each seed that has no link a few later ones. If a list was fetched only to depth d, it is assumed
to fall with the square of the rank from there on, which adds as much as d candidates like the last one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from indexes.dtypes import BoolArray, Float64Array
from linker.review.stopping.rule import Estimate, Rule, RuleOptions, percent
from linker.review.wording import say

# Prior of the offset and of the weights of a candidate's value, the logarithm of its rank, and whether its seed has a
# link: their means, and their ridge penalties.
PRIOR, FIRMNESS = np.array([0.0, 1.0, 0.0, -1.0]), np.array([0.1, 3.0, 10.0, 0.3])
ERRORS = 2.0  # standard deviations from the expected number to its upper limit
STEPS = 30
FALLS_FROM = 20
LEAST_READ, GROWTH = 10, 0.1  # reads before the first fit; share by which they must grow before the next


@dataclass(frozen=True, slots=True)
class LinksLeft:
    """The expected number of links among unread candidates, and the standard deviation of that number."""

    expected: float
    deviation: float

    @property
    def high(self) -> float:
        """An upper limit that the number of links left rarely exceeds."""
        return self.expected + ERRORS * self.deviation


def described(values: npt.ArrayLike, places: npt.ArrayLike, linked: npt.ArrayLike) -> Float64Array:
    """Return the model's inputs [n, 4] for candidates with `values` and ranks `places`, whose seeds are `linked`."""
    values = np.asarray(values, dtype=np.float64)
    return np.column_stack(
        [np.ones(len(values)), values, np.log(places), np.asarray(linked, dtype=np.float64)]
    )


class ReadModel:
    """The log odds that a candidate is a link, linear in the inputs; without reads, `weights` [4] are the prior's."""

    def __init__(self, inputs: Float64Array, links: BoolArray | Sequence[bool]) -> None:
        """Fit the model to reads with `inputs` [n, 4]; `links` [n]: which of them were links."""
        from scipy.special import expit

        wanted, self.weights = np.asarray(links, dtype=np.float64), PRIOR.copy()

        def loss(weights: Float64Array) -> float:
            margin, away = inputs @ weights, weights - PRIOR
            return float((np.logaddexp(0, margin) - wanted * margin).sum() + FIRMNESS @ away**2 / 2)

        for _ in range(STEPS):  # Newton's method
            p = expit(inputs @ self.weights)
            slope = inputs.T @ (wanted - p) - FIRMNESS * (self.weights - PRIOR)
            self._curvature = (inputs * (p * (1 - p))[:, None]).T @ inputs + np.diag(FIRMNESS)
            step = np.linalg.solve(self._curvature, slope)
            if float(np.abs(step).max()) < 1e-6:
                break
            # A full step may overshoot, and then the next ones would go back and forth.
            now = loss(self.weights)
            while loss(self.weights + step) > now and float(np.abs(step).max()) > 1e-9:
                step /= 2
            self.weights = self.weights + step

    def log_odds(self, value: float, place: int, *, linked: bool) -> float:
        """Return the log odds of one candidate."""
        offset, by_value, by_place, by_link = self.weights.tolist()
        return float(offset + by_value * value + by_place * math.log(place) + by_link * linked)

    def left(
        self,
        inputs: Float64Array,
        last: Float64Array,
        depths: Sequence[int],
        limits: tuple[npt.ArrayLike, npt.ArrayLike] = (1.0, 1.0),
    ) -> LinksLeft:
        """Return how many links are expected among the candidates `inputs` [n, 4] and beyond the `last` ones [m, 4].

        `depths` [m] are the ranks of the last ones. `limits` [n] and [m] are upper limits of the probabilities. The
        deviation does not include the links beyond the last ones.
        """
        from scipy.special import expit

        p = np.minimum(expit(inputs @ self.weights), limits[0])
        spread = p * (1 - p)
        slope = inputs.T @ spread
        error = float(slope @ np.linalg.solve(self._curvature, slope))
        at_end = np.minimum(expit(last @ self.weights), limits[1])
        beyond = float(at_end @ np.asarray(depths, dtype=np.float64))
        return LinksLeft(float(p.sum()) + beyond, math.sqrt(float(spread.sum()) + error))


class LinkReads:
    """The reads of an order of pairs, and the model that is fitted whenever they have grown by a tenth.

    A seed's list is identified by its number. The model is fitted to the reads up to certain counts only, so that a
    resumed review has the same model as one that was not interrupted.
    """

    def __init__(self) -> None:
        self._reads: list[tuple[int, float, float | None, int, bool, bool]] = []
        self._count, self._links = Counter[int](), Counter[int]()
        self._due, self._next, self._fitted = 0, LEAST_READ, 0
        self._model = ReadModel(described([], [], []), [])
        self._power = 0.0  # of the rank, with which links become rarer
        self._left: LinksLeft | None = None

    def add(self, number: int, score: float | None, probability: float | None, *, is_link: bool) -> None:
        """Count one more read from a seed's list."""
        self._count[number] += 1
        if score is not None:
            place, linked = self._count[number], self._links[number] > 0
            self._reads.append((number, score, probability, place, linked, is_link))
        self._links[number] += is_link
        if len(self._reads) >= self._next:
            self._due, self._next = len(self._reads), math.ceil((1 + GROWTH) * len(self._reads))

    def fit(self, value: Callable[[int, float, float | None], float]) -> bool:
        """Fit the model if that is due, and return whether it was; `value` returns the value of a list's candidate."""
        if self._fitted == self._due:
            return False
        reads, self._fitted, self._left = self._reads[: self._due], self._due, None
        values = [value(number, score, probability) for number, score, probability, *_ in reads]
        inputs = described(values, [read[3] for read in reads], [read[4] for read in reads])
        links = [read[5] for read in reads]
        self._model = ReadModel(inputs, links)
        inputs[:, 1] = 0  # of two candidates of the same value, a later one need not be worse
        self._power = max(0.0, -float(ReadModel(inputs, links).weights[2]))
        return True

    def log_odds(self, number: int, value: float) -> float:
        """Return the log odds that a list's next candidate is a link."""
        return self._model.log_odds(value, self._count[number] + 1, linked=self._links[number] > 0)

    def left(self, lists: Sequence[Float64Array], deeper: Sequence[bool]) -> LinksLeft | None:
        """Return how many links were expected among the unread at the last fit; None before the first fit.

        `lists`: the values of the first candidates of each list, best first; `deeper`: whether a list has more.
        """
        if not self._fitted:
            return None
        if self._left is None:
            reads = self._reads[: self._fitted]
            count, linked = Counter(read[0] for read in reads), {read[0] for read in reads if read[5]}
            unread, last, depths = [described([], [], [])], [described([], [], [])], list[int]()
            limits, limits_of_last = [np.ones(0)], list[float]()
            for number, (values, more) in enumerate(zip(lists, deeper, strict=True)):
                start, has_link = count[number], float(number in linked)
                places = np.arange(start, max(len(values), start)) + 1
                unread.append(described(values[start:], places, np.full(len(places), has_link)))
                limits.append(self._limits(values, places, linked=number in linked))
                if more:
                    depths.append(max(len(values), start + 1))
                    last.append(described(values[-1:], depths[-1:], [has_link]))
                    limits_of_last.append(float(limits[-1][-1]) if len(places) else 1.0)
            self._left = self._model.left(
                np.concatenate(unread), np.concatenate(last), depths, (np.concatenate(limits), limits_of_last)
            )
        return self._left

    def _limits(self, values: Float64Array, places: npt.NDArray[np.int64], *, linked: bool) -> Float64Array:
        """Return upper limits of the probabilities of a list's unread candidates, those at ranks `places`."""
        limits = np.ones(len(places))
        if self._power and len(places) and (first := max(int(places[0]), FALLS_FROM)) < places[-1]:
            log_odds = self._model.log_odds(float(values[first - 1]), first, linked=linked)
            behind = places > first
            limits[behind] = (first / places[behind]) ** self._power / (1 + math.exp(-log_odds))
        return limits


class ExpectedLinks(Rule[RuleOptions]):
    """Stop if the target is reached even with two standard errors more links among the unread than expected.

    This is the default for pairs. It assumes that unread candidates are links as often as the reads with the same value
    and rank were. `look` asks the order how many links are left.
    """

    kind = RuleOptions

    def __init__(self, population: int, target: float, options: RuleOptions | None = None) -> None:
        """See `Rule`."""
        super().__init__(population, target, options)
        self.look: Callable[[], LinksLeft | None] = lambda: None

    def _estimate(self) -> Estimate:
        links, found = self.look(), self.counts.found
        if links is None:
            return Estimate(False, say("Read on: it cannot be estimated yet how many are left."))
        counted: dict[str, int | float | Decimal] = {
            "left": round(links.expected), "high": math.ceil(links.high), "target": percent(self.target),
        }  # fmt: skip
        if found < self.target * (found + links.high):
            reason = say(
                "Read on: about %(left)s relevant ones are expected among the unread, %(high)s at most, too many for a "
                "recall of %(target)s.",
                **counted,
            )
            return Estimate(False, reason)
        reason = say(
            "Estimated: the target recall of %(target)s is reached, because about %(left)s relevant ones are expected "
            "among the unread, %(high)s at most.",
            **counted,
        )
        return Estimate(True, reason)
