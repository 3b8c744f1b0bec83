"""A review in the list of reviews: its content, its progress, and the error if it cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from indexes.errors import reason_of
from indexes.interface import IndexesError
from indexes.sharded import manifests_of
from linker.base.errors import InputError
from linker.review.ledger import Ledger
from linker.review.project import Project
from linker.review.rows.states import counts, states


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A review and its counts. `unit`: the kind of job, empty until somebody chooses one.

    `matched`, `none`: rows with a match, and rows judged to have none. `last`: the time of the last verdict, or of
    the review's creation.
    """

    project: Project
    unit: str = ""
    documents: int = 0
    seeds: int = 0
    judged: int = 0
    relevant: int = 0
    matched: int = 0
    none: int = 0
    last: str = ""
    problem: str = ""

    @property
    def share(self) -> float:
        """The share done, 0 to 1, of the rows or of the documents."""
        done, whole = (
            (self.matched + self.none, self.seeds) if self.unit == "pairs" else (self.judged, self.documents)
        )
        return min(done / whole, 1.0) if whole else 0.0


def row_of(project: Project) -> ReviewRow:
    """Return a review's row; if it cannot be read, the row's problem says why."""
    if project.problem:
        return ReviewRow(project, problem=project.problem)
    try:
        documents = sum(m.documents for m in manifests_of(project.index)) if project.ready else 0
        made = str(project.about.get("created", ""))
        if not project.ledger.exists():
            return ReviewRow(project, documents=documents, last=made)
        with Ledger(project.ledger) as ledger:
            judgements, seeds = ledger.judgements(), ledger.seeds
            of_rows = counts(states(seeds, {}, ledger.judgements(rows=True)))
            unit = str(ledger.settings.get("unit", ""))
    except (InputError, IndexesError, OSError) as e:
        return ReviewRow(project, problem=reason_of(e))
    # each is counted once, whoever judged it
    read = {(j.seed, j.id) for j in judgements if j.verdict != "skip"}
    relevant = {(j.seed, j.id) for j in judgements if j.relevant}
    last = max((j.time for j in judgements), default=made)
    matched, none = of_rows["matched"], of_rows["none"]
    return ReviewRow(project, unit, documents, len(seeds), len(read), len(relevant), matched, none, last)
