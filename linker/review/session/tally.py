"""The tally of a review's judgements: the documents read and found, in the order of reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from indexes.interface import RowArray
from linker.review.interface import AUDITED, RANDOM, Judgement, LanguageCount, Read, Verdict
from linker.review.population import Population
from linker.review.reservations import Key
from linker.review.stopping import Rule

if TYPE_CHECKING:
    from linker.engine.foreign import Foreign


def counting(
    judgements: Iterable[Judgement], seeds: Collection[str], population: Population
) -> list[Judgement]:
    """Return the judgements that count in a review of these seeds, in order.

    A document counts if the review could have shown it: the review did not look for any others, so counting them as
    found would overstate recall. A queue judgement that names no model was imported before linker recorded imports.
    """
    known = [j for j in judgements if j.seed in seeds or not j.seed]
    inside = population.holds([(j.seed, j.id) for j in known])
    return [
        replace(j, phase="prior") if j.phase == "queue" and not j.model else j
        for j, is_inside in zip(known, inside, strict=True)
        if is_inside
    ]


class Prefix(Sequence[int]):
    """A view of an append-only list as it is now: it does not show what is appended later, and copies nothing."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers, self._count = numbers, len(numbers)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self._numbers[i] for i in range(*index.indices(self._count))]
        return self._numbers[range(self._count)[index]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal to a list, which has none


class Tally:
    """Standing judgements by document, or by seed and document if every seed has its own links (`pairs`).

    Of two reviewers' judgements of the same document, the later counts, so that whoever resolves a conflict decides;
    the phase and the position in the order of reading are those of the first.
    """

    def __init__(self, rule: Rule[Any], judgements: Iterable[Judgement] = (), *, pairs: bool = False) -> None:
        self.rule, self._pairs = rule, pairs
        self.verdicts: dict[Key, Verdict] = {}
        self.standing: dict[Key, Judgement] = {}  # counted judgements by key
        self.reviewers: dict[Key, set[str]] = {}  # who has judged each document that was read
        self.counts = Counter[Verdict]()
        self.found_by_seed = Counter[str]()
        self.audited = 0  # documents read in audits
        self.drawn = 0  # documents drawn at random, in audits or not
        self.prior = 0  # documents read elsewhere and imported
        self._curve: list[int] = []
        standing: dict[Key, Judgement] = {}
        for judgement in judgements:
            key, phase = self.key(judgement), judgement.phase
            earlier = standing.get(key)
            if judgement.verdict == "skip" and earlier is not None:
                continue
            self._note(judgement)
            if earlier is not None and earlier.verdict == "skip":
                del standing[key]  # moved to the end, since it is read now, and not when it was skipped
            elif earlier is not None:
                phase = earlier.phase
            standing[key] = replace(judgement, phase=phase)
        for judgement in standing.values():
            self._count(judgement)

    def key(self, judgement: Judgement) -> Key:
        """Return the judgement's document and, with `pairs`, its seed."""
        return (judgement.seed if self._pairs else "", judgement.id)

    def is_read(self, key: Key) -> bool:
        """Return whether the document with this key was judged rather than skipped."""
        return self.verdicts.get(key, "skip") != "skip"

    def add(self, judgement: Judgement) -> bool:
        """Count one more judgement; return False, and count nothing, if it contradicts earlier counts."""
        key = self.key(judgement)
        if self.is_read(key):
            self._note(judgement)
            is_same = self.verdicts[key] == judgement.verdict
            if is_same:
                self.standing[key] = replace(judgement, phase=self.standing[key].phase)
            return is_same
        if self.verdicts.pop(key, None):
            self.counts["skip"] -= 1
        self._note(judgement)
        self._count(judgement)
        return True

    def _note(self, judgement: Judgement) -> None:
        if judgement.verdict != "skip":
            self.reviewers.setdefault(self.key(judgement), set()).add(judgement.reviewer)

    def _count(self, judgement: Judgement) -> None:
        self.verdicts[self.key(judgement)] = judgement.verdict
        self.standing[self.key(judgement)] = judgement
        self.counts[judgement.verdict] += 1
        if judgement.verdict == "skip":
            return
        self.audited += judgement.phase in AUDITED
        self.drawn += judgement.phase in RANDOM or judgement.phase == "front"
        self.found_by_seed[judgement.seed] += judgement.relevant
        if judgement.phase == "prior":
            self.prior += 1
        else:
            self._curve.append(self.found)
        self.rule.update(Read(judgement.relevant, judgement.phase))

    def languages(self, foreign: Foreign, population: Population) -> list[LanguageCount]:
        """Return the counts of each language, the index's own first; none if the index is in one language."""
        if not len(foreign.rows):
            return []

        def counted(rows: RowArray) -> list[int]:
            counts: list[int] = np.bincount(
                foreign.languages[rows] + 1, minlength=len(foreign.names)
            ).tolist()
            return counts

        read = [j for j in self.standing.values() if j.verdict != "skip"]
        rows, found = (
            population.rows_of([j.id for j in part]) for part in (read, [j for j in read if j.relevant])
        )
        counts = map(counted, (population.rows, rows, found))
        return [LanguageCount(*of) for of in zip(foreign.names, *counts, strict=True) if of[1]]

    @property
    def read(self) -> int:
        """Number of documents read, here or elsewhere; skipped ones do not count."""
        return len(self._curve) + self.prior

    @property
    def found(self) -> int:
        """Number of relevant documents among those read."""
        return self.counts["relevant"]

    @property
    def curve(self) -> Prefix:
        """The number found after each document read here; imported ones count from the time of import."""
        return Prefix(self._curve)
