"""P(link) learned from a review's own judgements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from linker.corpora import Query
from linker.review.interface import Judgement, Seed

if TYPE_CHECKING:
    from linker.engine.engine import Engine
    from linker.scoring.probability.calibration import Calibration

GRADES = {"relevant": 1.0, "not": 0.0}


class CalibrationData(Protocol):
    """The part of a ledger that a calibration needs."""

    @property
    def seeds(self) -> Sequence[Seed]:
        """The texts whose links are sought."""
        ...

    def judgements(self) -> Sequence[Judgement]:
        """Return the standing judgements of all reviewers."""
        ...


def calibrated(
    engine: Engine, ledger: CalibrationData, *, held_share: float = 0.5, seed: int = 0
) -> Calibration:
    """Return a calibration fitted on the judgements of a review; `Engine.store_calibration` takes it once it is saved.

    Only judged pairs count, so the probabilities apply to documents like those that the review showed. Raises
    InputError if fewer than 20 judged documents are relevant, or fewer than 20 are not.
    """
    queries = [Query(s.id, s.full_text) for s in ledger.seeds]
    qrels = agreed(ledger.judgements())
    return engine.calibrate(queries, qrels, complete=False, held_share=held_share, seed=seed)


def agreed(judgements: Iterable[Judgement]) -> dict[str, dict[str, float]]:
    """Return the relevance, 1 or 0, of each document by seed; a pair on which reviewers disagree is left out.

    "maybe" and "skip" do not count.
    """
    said: dict[tuple[str, str], set[float]] = {}
    for judgement in judgements:
        if judgement.verdict in GRADES:
            said.setdefault((judgement.seed, judgement.id), set()).add(GRADES[judgement.verdict])
    qrels: dict[str, dict[str, float]] = {}
    for (seed, id_), grades in said.items():
        if len(grades) == 1:
            qrels.setdefault(seed, {})[id_] = grades.pop()
    return qrels
