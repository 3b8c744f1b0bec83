"""The base class of all stopping rules: options, the counts of a review, and the state of a rule."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Generic, Literal, TypeVar

from linker.review.interface import OrderCertificate, Read, StopState, TotalEstimate
from linker.review.stopping.audit import Audit
from linker.review.stopping.total import FindHistory
from linker.review.wording import Sentence, joined, say, say_many

LEAST_FOUND = 15  # minimum number of relevant documents that must be found before any claim is made
ASSUMPTION = say("The first twentieth of the unread holds at least half of the relevant ones left.")


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """The options that every rule has.

    `alpha` is the error allowed; `audit`, the number of random unread documents that the audit reads (0: no audit).
    `certificate`: "exact" draws every audited document from all unread ones; "order" draws half of them from the top of
    an order that learns, and also certifies a recall that depends on the order. A review uses "exact" if its order does
    not learn.
    """

    POSITIVE: ClassVar[tuple[str, ...]] = ()  # names of further options, which must be above 0

    alpha: float = 0.05
    audit: int = 300
    certificate: Literal["order", "exact"] = "order"

    def __post_init__(self) -> None:
        """Raise ValueError for a value outside its range."""
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha = {self.alpha:g}: choose an error between 0 and 1, such as 0.05")
        if self.audit < 0:
            raise ValueError(f"audit = {self.audit}: choose a number of documents, or 0 for no audit")
        for name in self.POSITIVE:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} = {getattr(self, name):g}: choose a number above 0")


O_co = TypeVar("O_co", bound=RuleOptions, covariant=True)


@dataclass(slots=True)
class Counts:
    """Numbers of documents: in the population (less those ruled out), read, found, and read since the last find.

    An irrelevant document that did not come from the queue (an audit, a search) says nothing about the ranking: it is
    only removed from the population. A relevant document always counts, and starts a new gap. Imported documents (prior
    knowledge) are removed as well, and the evidence about the ranking begins after them.
    """

    population: int
    read: int = 0
    found: int = 0
    gap: int = 0

    def take(self, read: Read) -> None:
        """Count one more document."""
        if read.relevant:
            self.read, self.found, self.gap = self.read + 1, self.found + 1, 0
        elif read.phase == "queue":
            self.read, self.gap = self.read + 1, self.gap + 1
        else:
            self.population -= 1
        if read.phase == "prior":
            self.gap = 0

    @property
    def unread(self) -> int:
        """The number of unread documents in the population."""
        return max(self.population - self.read, 0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rule's own estimate: whether the target is reached, why, and whether reading is over without any claim."""

    reached: bool
    reason: Sentence
    over: bool = False


class Rule(ABC, Generic[O_co]):
    """A stopping rule with its audit; `kind` is the class of its options.

    Pass it every judgement with a verdict other than "skip", in the order they were made, each document once. To undo,
    make a new rule and replay: a thousand judgements take about ten milliseconds. An audit begins with the first
    judgement of phase "audit"; if it finds a relevant document, `estimated` is False again and the queue continues. The
    order of judgements of phase "prior" changes nothing.
    """

    kind: type[O_co]

    def __init__(self, population: int, target: float, options: O_co | None = None) -> None:
        """`population`: documents that can be read, without the seeds; `target`: the recall wanted, 0 to 1."""
        self.target, self.options = target, options or self.kind()
        self.counts = Counts(population)
        self._finds = FindHistory()
        by_order = self.options.certificate == "order"
        self.audit = Audit(self.options.audit, self.options.alpha, target, by_order=by_order)

    def update(self, read: Read) -> StopState:
        """Process one more judgement and return the new state."""
        if not read.reached:
            self.audit.take(read, self.counts.unread, self.counts.found)
            self._finds.take(read)
        self._take(read)
        return self.state

    @property
    def state(self) -> StopState:
        """The current state."""
        found, bound = self.counts.found, self.left
        if not self.counts.unread:
            return StopState(True, 1.0 if found else None, say("Every document was read."), stop=True, left=0)
        estimate = self._estimate()
        few, certified, audited = found < LEAST_FOUND and not estimate.over, self.certified, self.audit.passed
        due = estimate.reached and not audited
        bounds = [*self._bounds(certified, bound)]
        reasons = [_too_few(found, bound) if few else estimate.reason, *bounds]
        if due:
            reasons.append(self._audit_next())
        # If few were found, the estimate is not shown, and reading ends only after an audit has bounded the rest.
        stop = estimate.over or (estimate.reached and audited and not (few and bound is None))
        reached = estimate.reached and not few
        return StopState(
            reached, certified, joined(reasons), stop, bound, due, joined(bounds), self.by_order
        )  # fmt: skip

    @property
    def certified(self) -> float | None:
        """A lower bound on recall at confidence 1 − alpha, valid for any order of reading; None if there is none."""
        found, bound = self.counts.found, self.left
        return None if bound is None or found < LEAST_FOUND else found / (found + bound)

    @property
    def left(self) -> int | None:
        """An upper bound on relevant documents left unread, with confidence 1 − alpha; None without a random read."""
        if self.audit.total is None:
            return None
        return min(max(self.audit.total - self.counts.found, 0), self.counts.unread)

    @property
    def by_order(self) -> OrderCertificate | None:
        """The certificate by order, at confidence 1 − alpha; None without reads from the front."""
        total, found = self.audit.total_by_order, self.counts.found
        if self.audit.is_contradicted:
            return OrderCertificate(_contradiction(self.audit), None, ASSUMPTION, contradicted=True)
        if total is None or found < LEAST_FOUND:
            return None
        recall = found / max(min(total, found + self.counts.unread), found)
        claim = say(
            "Certified by the order: recall is at least %(recall)s, if the first twentieth of the unread holds at "
            "least half of the relevant ones left and all verdicts are right.",
            recall=_floor(recall),
        )
        return OrderCertificate(claim, recall, ASSUMPTION, contradicted=False)

    @property
    def total(self) -> TotalEstimate | None:
        """The estimated number of relevant documents, if the order learns; None if few were found or any imported."""
        return self._finds.total(self.counts.unread)

    @property
    def ahead(self) -> int | None:
        """How many irrelevant documents in a row it takes until the estimate reaches the target; None if unknown.

        With few found, it is None: the estimate would be too uncertain to be shown.
        """
        return self._ahead() if self.counts.found >= LEAST_FOUND else None

    def _ahead(self) -> int | None:
        return None

    def _bounds(self, certified: float | None, left: int | None) -> Iterator[Sentence]:
        if self.audit.passed and self.audit.count:
            count, hits, front = self.audit.result
            yield say(
                "The audit is complete: %(found)s relevant among %(drawn)s drawn at random from the unread.",
                found=hits, drawn=count,
            )  # fmt: skip
            if front:
                yield from_the_front(front)
        if certified is not None:
            yield say(
                "Certified by random reads: recall is at least %(recall)s, if all verdicts are right.",
                recall=_floor(certified),
            )
        if left is not None:
            yield most_left_sentence(left, self.options.alpha)
        if (by_order := self.by_order) and isinstance(by_order.claim, Sentence):
            yield by_order.claim

    def _audit_next(self) -> Sentence:
        return say_many(
            "The audit is next: read unread documents at random, %(num)s document.",
            "The audit is next: read unread documents at random, %(num)s documents.",
            min(self.audit.left, self.counts.unread),
        )

    def _take(self, read: Read) -> None:
        self.counts.take(read)

    @abstractmethod
    def _estimate(self) -> Estimate:
        """Return the rule's own estimate."""


def _too_few(found: int, bound: int | None) -> Sentence:
    if bound is not None:
        return say(
            "No recall is claimed with fewer than %(least)s relevant documents found (%(found)s so far).",
            least=LEAST_FOUND, found=found,
        )  # fmt: skip
    return say(
        "Nothing is claimed with fewer than %(least)s relevant documents found (%(found)s so far): "
        "read on, or let an audit bound how many are left.",
        least=LEAST_FOUND, found=found,
    )  # fmt: skip


def _contradiction(audit: Audit) -> Sentence:
    return say(
        "The random reads contradict the assumption of the certificate by the order: of %(anywhere)s drawn from "
        "everything unread, %(outside)s are relevant, and of %(front)s drawn from the first twentieth of the order, "
        "%(inside)s are. Only the certificate without an assumption holds.",
        outside=audit.anywhere[1], anywhere=audit.anywhere[0], inside=audit.front[1], front=audit.front[0],
    )  # fmt: skip


def most_left_sentence(left: int, alpha: float) -> Sentence:
    """Return the certified bound on the relevant documents left, at error `alpha`, as a sentence."""
    return say(
        "With %(confidence)s confidence, at most %(left)s relevant ones are left unread, if all verdicts are right.",
        confidence=1 - alpha, left=left,
    )  # fmt: skip


def from_the_front(count: int) -> Sentence:
    """Return a sentence on how many of the audited documents came from the front."""
    return say(
        "%(front)s of those drawn at random came from the first twentieth of the unread in this order.",
        front=count,
    )


def number(value: float) -> Decimal:
    """Return a number for use in a sentence, with the user's digits: 0.05, not 0.050."""
    return Decimal(f"{value:g}")


def percent(target: float) -> float | Decimal:
    """Return a target recall for use in a sentence: in per cent or, if these are not whole, as the number it is."""
    return float(target) if round(100 * target, 9).is_integer() else number(target)


def _floor(recall: float) -> float:
    """Return a lower bound of recall in whole per cent, never rounded up."""
    return math.floor(100 * recall + 1e-9) / 100
