"""How far two reviewers agree (Cohen's κ), and their conflicts, whose resolutions are ledger entries of their own."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linker.base.errors import InputError
from linker.review.interface import Judgement, Verdict
from linker.review.ledger import Ledger

CONSENSUS = "consensus"  # reviewer name for resolved conflicts: not a person, so that κ does not change
Pair = tuple[str, str]  # seed and document


@dataclass(frozen=True, slots=True)
class Conflict:
    """A document on which two reviewers disagree, and the resolution, if there is one."""

    first: Judgement
    second: Judgement
    resolution: Judgement | None

    def record(self) -> dict[str, Any]:
        """Return the conflict as JSON values."""
        return {
            "seed": self.first.seed, "id": self.first.id, "verdicts": [self.first.verdict, self.second.verdict],
            "resolution": self.resolution.verdict if self.resolution else None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two reviewers on the `both` documents that both judged ("skip" does not count).

    `kappa` is Cohen's κ over the verdicts relevant, not and maybe; None if the expected agreement is 1 (one verdict
    throughout) or nothing was judged by both. `table` has counts by (first's verdict, second's verdict).
    """

    reviewers: tuple[str, str]
    both: int
    agreed: int
    kappa: float | None
    table: Mapping[tuple[Verdict, Verdict], int]
    conflicts: tuple[Conflict, ...]

    def record(self) -> dict[str, Any]:
        """Return the agreement as JSON values."""
        return {
            "reviewers": self.reviewers, "both": self.both, "agreed": self.agreed, "kappa": self.kappa,
            "table": [[*verdicts, count] for verdicts, count in self.table.items()],
            "conflicts": [conflict.record() for conflict in self.conflicts],
        }  # fmt: skip


def agreement(
    judgements: Iterable[Judgement], first: str, second: str, *, by_document: bool = False
) -> Agreement:
    """Compare two reviewers' current verdicts on the same seed and document.

    `by_document`: compare verdicts on the same document, whatever the seed: all seeds describe one topic.
    """
    verdicts = _by_reviewer(judgements, by_document)
    mine, theirs = verdicts.get(first, {}), verdicts.get(second, {})
    resolved = verdicts.get(CONSENSUS, {})
    both = [(pair, mine[pair], theirs[pair]) for pair in mine if pair in theirs]
    table = Counter((a.verdict, b.verdict) for _, a, b in both)
    conflicts = tuple(Conflict(a, b, resolved.get(pair)) for pair, a, b in both if a.verdict != b.verdict)
    agreed = len(both) - len(conflicts)
    return Agreement((first, second), len(both), agreed, _kappa(table), dict(table), conflicts)


def resolve(ledger: Ledger, conflict: Conflict, verdict: Verdict, by: str, note: str = "") -> Judgement:
    """Record the resolution of a conflict as an entry of its own: both judgements stay as they are.

    Its reviewer is CONSENSUS; the tag "by:NAME" says who decided.
    """
    decision = dataclasses.replace(
        conflict.first, verdict=verdict, reviewer=CONSENSUS, note=note, tags=(f"by:{by}",), time=""
    )
    return ledger.add(decision)


def decided(judgements: Iterable[Judgement], *, by_document: bool = False) -> tuple[Judgement, ...]:
    """Return one judgement per seed and document: the consensus, or the first if all reviewers agree.

    Pairs on which reviewers disagree without a consensus, and pairs that were only skipped, are left out.
    """
    by_pair: dict[Pair, list[Judgement]] = {}
    for judgement in judgements:
        if judgement.verdict != "skip":
            by_pair.setdefault(_key(judgement, by_document), []).append(judgement)
    final = []
    for verdicts in by_pair.values():
        consensus = [j for j in verdicts if j.reviewer == CONSENSUS]
        if consensus or len({j.verdict for j in verdicts}) == 1:
            final.append((consensus or verdicts)[0])
    return tuple(final)


def two_reviewers(names: Sequence[str], first: str = "", second: str = "") -> tuple[str, str]:
    """Return the reviewers to compare: those given, or the only two. Raises InputError, which names the known ones."""
    people = [name for name in names if name != CONSENSUS]
    chosen = [first, second] if first and second else people
    if len(chosen) != 2 or not set(chosen) <= set(names):
        known = ", ".join(repr(name) for name in people) or "none"
        raise InputError(f"expected two reviewers: name two from this ledger ({known})")
    return chosen[0], chosen[1]


def _kappa(table: Mapping[tuple[Verdict, Verdict], int]) -> float | None:
    """Return (observed − expected) / (1 − expected) agreement (Cohen, 1960, equation 1)."""
    n = sum(table.values())
    first, second = Counter[str](), Counter[str]()
    for (a, b), count in table.items():
        first[a] += count
        second[b] += count
    expected = sum(first[verdict] * second[verdict] for verdict in first)  # the expected agreement, times n²
    if expected == n * n:
        return None
    observed = n * sum(count for (a, b), count in table.items() if a == b)  # the observed agreement, times n²
    return (observed - expected) / (n * n - expected)


def _by_reviewer(judgements: Iterable[Judgement], by_document: bool) -> dict[str, dict[Pair, Judgement]]:
    verdicts: dict[str, dict[Pair, Judgement]] = {}
    for judgement in judgements:
        if judgement.verdict != "skip":
            verdicts.setdefault(judgement.reviewer, {})[_key(judgement, by_document)] = judgement
    return verdicts


def _key(judgement: Judgement, by_document: bool) -> Pair:
    return "" if by_document else judgement.seed, judgement.id
