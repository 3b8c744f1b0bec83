"""Read the documents of a review one after another, until enough were found or the reviewer stops."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from indexes.showing import table
from linker.review.interface import Candidate, LanguageCount, OrderCertificate, Verdict
from linker.review.session.review import Review

Answer = Verdict | Literal["undo", "quit", "no input"]
STOPPED = {
    "quit": "stopped by the reviewer",
    "no input": "no input: stdin is closed or at its end; answer on a terminal, or give --judgements",
}


@dataclass(frozen=True, slots=True)
class FindLimits:
    """When to stop, in addition to the settings' `until`: after `max_read` reads, or (`rule`) by the stopping rule.

    Imported documents are not reads. With `audit`, the audit begins as soon as the rule requires it, and reading ends
    when the rule requires nothing more.
    """

    max_read: int | None = None
    rule: bool = False
    audit: bool = False


@dataclass(frozen=True, slots=True)
class FindReport:
    """How reading ended: documents read and found, out of how many, the last candidate's score, and why it stopped.

    If every seed has links of its own, pairs of `seeds` and `documents` are counted; otherwise `seeds` is 0.
    `estimated`, `certified`, `left` and `by_order` are the stopping rule's state (see `StopState`), `reason` its
    sentence. `languages` counts the documents of each language if the index has lexicons (see `Review.languages`).
    """

    read: int
    relevant: int
    maybe: int
    skipped: int
    population: int
    score: float | None
    probability: float | None
    stopped: str
    estimated: bool
    certified: float | None
    reason: str
    seeds: int = 0
    documents: int = 0
    left: int | None = None
    by_order: OrderCertificate | None = None
    languages: tuple[LanguageCount, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<FindReport: {self.relevant} relevant of {self.read} read, {self.what} in all; {self.stopped}>"
        )

    @property
    def what(self) -> str:
        """How many documents there are; if every seed has links of its own, how many pairs, seeds and documents."""
        if not self.seeds:
            return f"{self.population}"
        return f"{self.population} pairs ({self.seeds} seeds, {self.documents} documents)"

    def _repr_html_(self) -> str:
        facts = ((name, "" if value is None else value) for name, value in asdict(self).items())
        return table(facts, caption=self.stopped)


def find(
    review: Review, judge: Callable[[Candidate], Answer], limits: FindLimits | None = None, reviewer: str = ""
) -> FindReport:
    """Ask `judge` about one document after another, until the settings or `limits` say stop, or none is left.

    Earlier judgements count, so a second call continues where the first one stopped.
    """
    limits = limits or FindLimits()
    last: Candidate | None = None
    if limits.rule:
        review.prepare()  # the rule may need the order's estimate
    while not (stopped := _enough(review, limits)):
        candidate = review.next(reviewer)
        if candidate is None:
            skipped = review.progress().skipped
            stopped = "every candidate was judged" + (f", {skipped} skipped" if skipped else "")
            break
        last = candidate
        answer = judge(candidate)
        if answer == "quit" or answer == "no input":  # noqa: PLR1714 - mypy narrows by this form alone
            stopped = STOPPED[answer]
            break
        if answer == "undo":
            review.undo(reviewer)
        else:
            review.judge(candidate, answer, reviewer)
    return _report(review, last, stopped)


def _enough(review: Review, limits: FindLimits) -> str:
    """Return the reason to stop now, or an empty string to continue; begin the audit if it is due."""
    progress, until = review.progress(), review.settings.until
    if until and not review.settings.per_seed and progress.found >= until:
        return f"{until} relevant found"
    if limits.max_read is not None and progress.read - progress.prior >= limits.max_read:
        return f"{limits.max_read} read"
    if not limits.rule:
        return ""
    if progress.stop.stop or (progress.stop.estimated and not limits.audit):
        return progress.stop.reason
    if limits.audit and progress.stop.due and progress.phase == "queue":
        review.begin_audit()
    return ""


def _report(review: Review, last: Candidate | None, stopped: str) -> FindReport:
    progress = review.progress()
    stop = progress.stop
    return FindReport(
        progress.read, progress.found, progress.maybe, progress.skipped, progress.population,
        last.score if last else None, last.probability if last else None, stopped, stop.estimated, stop.certified,
        stop.reason, progress.seeds, progress.documents, stop.left, stop.by_order, tuple(review.languages()),
    )  # fmt: skip
