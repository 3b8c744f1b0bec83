"""Find documents for seed texts, best first, until enough relevant ones have been judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from indexes.hybrid import Mode
from indexes.interface import Filter
from linker.corpora import Query
from linker.engine import Engine
from linker.review.jsonl_ledger import Judgement, Ledger

Verdict = int | Literal["undo", "quit", "no input"]
STOPPED = {
    "quit": "stopped by the reviewer",
    "no input": "no input: stdin is closed or at its end; answer on a terminal, or give --judgements",
}
DEPTH = 1000  # documents ranked per seed


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that may be relevant to a seed; `rank` is its rank for that seed, from 1."""

    seed: str
    id: str
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class StopRule:
    """When to stop: after `until` relevant documents, below the score `threshold`, or after `max_read` judgements."""

    until: int | None = None
    threshold: float | None = None
    max_read: int | None = None


@dataclass(frozen=True, slots=True)
class FindReport:
    """How the review ended: numbers of judgements and relevant documents, the last candidate's score, the reason."""

    read: int
    relevant: int
    score: float | None
    stopped: str


def candidates(
    engine: Engine,
    seeds: Sequence[Query],
    *,
    depth: int = DEPTH,
    mode: Mode | None = None,
    where: Filter | None = None,
) -> tuple[list[Candidate], str]:
    """Return the candidates for all seeds in one list, and what was unavailable (see `Answer.degraded`).

    They are sorted by score, then by rank, then by the seeds' order.
    """
    answer = engine.search([s.text for s in seeds], min(depth, max(len(engine), 1)), mode=mode, where=where)
    unsorted = [
        Candidate(seed.id, id_, score, rank)
        for seed, hits in zip(seeds, answer.hits, strict=True)
        for rank, (id_, score) in enumerate(zip(hits.ids, hits.scores.tolist(), strict=True), start=1)
    ]
    return sorted(unsorted, key=lambda c: (-c.score, c.rank)), answer.degraded


def find(
    ranked: Sequence[Candidate], judge: Callable[[Candidate], Verdict], ledger: Ledger, rule: StopRule
) -> FindReport:
    """Ask `judge` about the candidates that the ledger does not hold yet, best first, until the rule says stop.

    Earlier judgements of these seeds count, so that a second call continues where the first one stopped.
    """
    seeds = {c.seed for c in ranked}
    judged = _standing(ledger, seeds)
    relevant = _relevant(judged)
    last: float | None = None
    position = 0
    while True:
        candidate = ranked[position] if position < len(ranked) else None
        reason = _reason_to_stop(len(judged), relevant, candidate, rule)
        if reason or candidate is None:
            break
        last = candidate.score
        if (candidate.seed, candidate.id) in judged:
            position += 1
            continue
        verdict = judge(candidate)
        if isinstance(verdict, str) and verdict != "undo":
            reason = STOPPED[verdict]
            break
        if verdict == "undo":
            position = _undo(ledger, ranked, position)
            judged = _standing(ledger, seeds)
            relevant = _relevant(judged)
        else:
            ledger.add(Judgement(candidate.seed, candidate.id, verdict, candidate.score))
            judged[candidate.seed, candidate.id] = verdict
            relevant += verdict > 0
            position += 1
    return FindReport(len(judged), relevant, last, reason)


def _standing(ledger: Ledger, seeds: set[str]) -> dict[tuple[str, str], int]:
    """Return the relevance by (seed, id) of these seeds, without undone judgements."""
    return {(j.seed, j.id): j.relevance for j in ledger.judgements if j.seed in seeds}


def _relevant(judged: Mapping[tuple[str, str], int]) -> int:
    return sum(relevance > 0 for relevance in judged.values())


def _reason_to_stop(read: int, relevant: int, candidate: Candidate | None, rule: StopRule) -> str:
    """Return why to stop before `candidate` (None: nothing is left); empty to continue."""
    if rule.until is not None and relevant >= rule.until:
        return f"{rule.until} relevant found"
    if candidate is None:
        return "every candidate was judged"
    if rule.max_read is not None and read >= rule.max_read:
        return f"{rule.max_read} read"
    if rule.threshold is not None and candidate.score < rule.threshold:
        return f"the next score, {candidate.score:.6g}, is below the threshold {rule.threshold:g}"
    return ""


def _undo(ledger: Ledger, ranked: Sequence[Candidate], position: int) -> int:
    """Undo the last judgement and return the position of its candidate.

    Return `position` where there is none, or it was of other seeds and could not be asked again here.
    """
    last = ledger.last
    matches = (i for i, c in enumerate(ranked) if last and (c.seed, c.id) == (last.seed, last.id))
    index = next(matches, None)
    if index is None:
        return position
    ledger.undo()
    return min(index, position)
