"""Stopping rules that claim nothing: a run of irrelevant documents, a number found, a number read."""

from dataclasses import dataclass
from typing import ClassVar

from linker.review.interface import Read
from linker.review.stopping.rule import Estimate, Rule, RuleOptions
from linker.review.wording import say_many


@dataclass(frozen=True, slots=True)
class RowOptions(RuleOptions):
    """`gap`: the number of irrelevant documents in a row."""

    POSITIVE: ClassVar = ("gap",)
    gap: int = 100


class InARow(Rule[RowOptions]):
    """Stop after a number of irrelevant documents in a row: a rule of thumb without a target."""

    kind = RowOptions

    def _estimate(self) -> Estimate:
        left = self.options.gap - self.counts.gap
        if left > 0:
            reason = say_many(
                "Read on: %(num)s more irrelevant document ends the reading.",
                "Read on: %(num)s more irrelevant documents in a row end the reading.",
                left,
            )
            return Estimate(False, reason)
        reason = say_many(
            "%(num)s irrelevant document: the rule of thumb says stop; no estimate supports it.",
            "%(num)s irrelevant documents in a row: the rule of thumb says stop; no estimate supports it.",
            self.counts.gap,
        )
        return Estimate(True, reason)


@dataclass(frozen=True, slots=True)
class UntilOptions(RuleOptions):
    """`found`: the number of relevant documents wanted."""

    POSITIVE: ClassVar = ("found",)
    found: int = 10


@dataclass(frozen=True, slots=True)
class ReadsOptions(RuleOptions):
    """`reads`: the maximum number of documents read."""

    POSITIVE: ClassVar = ("reads",)
    reads: int = 1000


class Until(Rule[UntilOptions]):
    """Stop after a number of relevant documents; claims nothing about the rest."""

    kind = UntilOptions

    def _estimate(self) -> Estimate:
        found, until = self.counts.found, self.options.found
        if found < until:
            reason = say_many(
                "Read on: %(num)s more relevant document is wanted.",
                "Read on: %(num)s more relevant documents are wanted.",
                until - found,
            )
            return Estimate(False, reason)
        reason = say_many(
            "%(num)s relevant document found, as many as were wanted.",
            "%(num)s relevant documents found, as many as were wanted.",
            found,
        )
        return Estimate(False, reason, over=True)


class ReadCount(Rule[ReadsOptions]):
    """Stop after a number of reads; claims nothing about the rest."""

    kind = ReadsOptions

    def __init__(self, population: int, target: float, options: ReadsOptions | None = None) -> None:
        """See `Rule`."""
        super().__init__(population, target, options)
        self._reads = 0

    def _take(self, read: Read) -> None:
        super()._take(read)
        self._reads += read.phase != "prior"

    def _estimate(self) -> Estimate:
        left = self.options.reads - self._reads
        if left > 0:
            reason = say_many(
                "Read on: %(num)s more document may be read.",
                "Read on: %(num)s more documents may be read.",
                left,
            )
            return Estimate(False, reason)
        reason = say_many(
            "%(num)s document read, as many as were allowed.",
            "%(num)s documents read, as many as were allowed.",
            self._reads,
        )
        return Estimate(False, reason, over=True)
