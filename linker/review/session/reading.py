"""Which document comes next in a review, and who has it open."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from linker.review import stopping
from linker.review.interface import AUDITED, Candidate, Judgement, Phase, Read, Seed
from linker.review.learning import FeedbackOrder
from linker.review.orders import MergedOrder, Queue
from linker.review.population import Nearest, Population
from linker.review.reservations import Key, Reservations
from linker.review.session.tally import Tally, counting
from linker.review.settings import Settings
from linker.review.stopping import Rule
from linker.review.stopping.expected import ExpectedLinks
from linker.review.stopping.rules import Controls

if TYPE_CHECKING:
    from linker.engine.engine import Engine

CONTROLS = 0  # number of the random order in which controls are drawn; audits are numbered from 1


class Records(Protocol):
    """The interface that a review needs from its ledger, such as `linker.review.ledger.Ledger`."""

    @property
    def seeds(self) -> Sequence[Seed]:
        """The texts to find links for, in order."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Values by name; `linker.review.settings` lists those that a review reads."""

    def set(self, key: str, value: Any) -> None:
        """Store a setting."""

    def add_all(self, judgements: Iterable[Judgement]) -> Sequence[Judgement]:
        """Store judgements, all or none, and return them with their times."""

    def undo(self, reviewer: str) -> Judgement | None:
        """Undo the reviewer's last standing judgement and return it, or None if there is none."""

    def judgements(self, reviewer: str | None = None, *, rows: bool = False) -> Sequence[Judgement]:
        """Return the standing judgements in the order they were made; `rows`: also those of `UNREAD` phases."""


class Reading:
    """The documents that were read in a review, and those that it hands out next. Several threads may use it."""

    def __init__(self, engine: Engine, ledger: Records) -> None:
        self.engine, self.ledger = engine, ledger
        self._lock = threading.RLock()
        self._open = Reservations(self._key)
        self.refresh()

    def refresh(self) -> None:
        """Read seeds, settings and judgements from the ledger again, after another process has changed them.

        Raises InputError if a setting is invalid.
        """
        with self._lock:
            stored = self.ledger.settings
            self.settings = Settings.of(stored)
            self._phase: Phase = "audit" if stored.get("phase") == "audit" else "queue"
            self._audit: dict[str, int] = stored.get("audit_now", {"number": 0, "before": 0})
            self.seeds = tuple(self.ledger.seeds)
            collection = self.engine.collection
            self.population = Population(collection.rows, self.seeds, self.settings)
            self._nearest = Nearest(self.seeds, collection.manifest.analysis)
            self._order = make_order(self.engine, self.seeds, self.settings, self.population)
            # by holder: candidates whose judgement was undone, to be judged again first
            self._undone: dict[str, deque[Candidate]] = {}
            self._returned: deque[Candidate] = deque()  # candidates handed out and returned unread
            self._second_time: set[Key] = set()  # candidates handed out again after a skip
            self._restart()
            self._open.keep(self._is_due)
            self._skipped = deque(
                self._candidate(seed, id_) for (seed, id_), v in self._tally.verdicts.items() if v == "skip"
            )

    def _is_due(self, held: Candidate) -> bool:
        """Return whether a reader's open document is still to be judged after a refresh."""
        seeds = {"", *(seed.id for seed in self.seeds)}
        phase = "audit" if held.phase in AUDITED else held.phase
        is_ours = held.seed in seeds and self._is_member(held) and phase in ("search", self.phase)
        return is_ours and (self.settings.double or not self._tally.is_read(self._key(held)))

    def _restart(self) -> None:
        """Replay this review's standing judgements into the order and a new stopping rule."""
        standing = counting(self.ledger.judgements(), {seed.id for seed in self.seeds}, self.population)
        rule = make_rule(self.settings, self.population.size, self._order)
        self._tally = Tally(rule, standing, pairs=self.settings.unit == "pairs")
        self._order.restart()
        is_hidden = isinstance(rule, Controls)
        self._controls = {self._key(j): j for j in standing if j.phase == "control" and is_hidden}
        for judgement in standing:
            if self._key(judgement) not in self._controls:
                self._order.tell(judgement)

    @property
    def phase(self) -> Phase:
        """Whether the next document comes from the queue, or is drawn at random for the audit or as a control."""
        rule = self._tally.rule
        if self._phase == "audit" and rule.audit.ended <= self._audit["before"]:
            return "audit"
        if isinstance(rule, Controls) and rule.drawn < rule.size:
            return "control"
        return "queue"

    def next(self, reviewer: str = "", holder: str = "") -> Candidate | None:
        """Return the candidate that this reader should judge now (the same until judged), or None if none is left.

        Nobody else gets it, unless two reviewers judge everything (`double`), or the reader's reservation expires (see
        `Reservations`). Skipped documents come last.
        """
        with self._lock:
            holder = holder or reviewer
            held = self._open.get(holder)
            if held is None and (held := self._draw(reviewer, holder)):
                self._open.put(holder, held)
            return held

    def prepare(self) -> None:
        """Train the model, or search for all seeds, ahead of the first `next`. Raises MissingExtraError."""
        with self._lock:
            self._order.prepare()

    def hold(self, candidate: Candidate, holder: str) -> bool:
        """Open a candidate from a list of rows for a reader; return False if somebody else has this seed open."""
        with self._lock:
            if not self.settings.double and candidate.seed in self._open.seeds(holder):
                return False
            self._open.put(holder, candidate)
            return True

    def seeds_elsewhere(self, holder: str) -> frozenset[str]:
        """Return the seeds that other readers have open; none if two reviewers judge everything blind."""
        with self._lock:
            return frozenset() if self.settings.double else self._open.seeds(holder)

    def elsewhere(self, holder: str = "") -> int:
        """Return how many documents other readers have open; if `next` returns None, only these are left."""
        with self._lock:
            return self._open.others(holder)

    def _draw(self, reviewer: str, holder: str) -> Candidate | None:
        if undone := self._undone.get(holder):
            return undone.popleft()
        while expired := self._open.expired():
            if self._lacks(self._key(expired), reviewer):
                return expired
        if self.settings.double and (second := self._unseen(reviewer)):
            return second
        if self.phase != "queue":
            return self._draw_random()
        while self._returned:
            if self._free(candidate := self._returned.popleft()):
                return candidate
        while following := self._order.next():
            if self._free(following):
                return following
            self._reach(self._key(following))
        while self._skipped:
            if self._free(candidate := self._skipped.popleft()):
                self._second_time.add(self._key(candidate))
                return candidate
        return None

    def _free(self, candidate: Candidate) -> bool:
        """Return whether a candidate is unread and nobody has it open."""
        key = self._key(candidate)
        return not self._tally.is_read(key) and self._open.of(key) is None

    def _lacks(self, key: Key, reviewer: str) -> bool:
        """Return whether a document still needs this reviewer's judgement."""
        readers = self._tally.reviewers.get(key, set())
        return len(readers) < (2 if self.settings.double else 1) and reviewer not in readers

    def _unseen(self, reviewer: str) -> Candidate | None:
        """Return the first document that exactly one other reviewer has judged and this one has not."""
        for key, reviewers in self._tally.reviewers.items():
            if len(reviewers) == 1 and reviewer not in reviewers and self._open.of(key) is None:
                return self._candidate(*key)
        return None

    def _reach(self, key: Key) -> None:
        """Pass the verdict on a control, which the order has now reached by itself, to the order and to the rule."""
        if control := self._controls.pop(key, None):
            self._order.tell(control)
            if control.relevant:
                self._tally.rule.update(Read(True, "control", reached=True))

    def _draw_random(self) -> Candidate | None:
        """Return a random unread document, the same after a restart: each audit has a random order of its own.

        Half of an audit's documents are drawn from the front, if the order learns.
        """
        phase, audit = self.phase, self._tally.rule.audit
        if phase == "audit" and audit.from_front and isinstance(self._order, FeedbackOrder):
            front = self._order.front(audit.order_evidence.front(self._tally.rule.counts.unread))
            free = [id_ for id_ in front if self._free(Candidate("", id_, 0.0))]
            if free:
                generator = np.random.default_rng(
                    [self.settings.seed, self._audit["number"], self._tally.drawn]
                )
                return self._candidate("", free[int(generator.integers(len(free)))], phase="front")
        drawn = self.population.at_random(
            [self.settings.seed, self._audit["number"] if phase == "audit" else CONTROLS],
            lambda seed, id_: self._free(Candidate(seed, id_, 0.0)),
        )
        return self._candidate(*drawn, phase=phase) if drawn else None

    def _candidate(self, seed: str, id_: str, phase: Phase = "queue") -> Candidate:
        """Return a document that no order proposed as a candidate; in a topic, with the most similar seed."""
        return Candidate(seed or self._nearest.of(self.engine.document(id_).full_text), id_, 0.0, phase=phase)

    def beside(self, id_: str) -> Candidate:
        """Return a document found by search as a candidate for the seed that it resembles most.

        Raises UnknownIdError if it is not in the index.
        """
        return self._candidate("", id_, phase="search")

    def likeliest(self, id_: str, count: int) -> tuple[str, ...]:
        """Return the seeds that a document resembles most. Raises UnknownIdError if it is not in the index."""
        return self._nearest.likeliest(self.engine.document(id_).full_text, count)

    def _key(self, candidate: Candidate | Judgement) -> Key:
        return (candidate.seed if self.settings.unit == "pairs" else "", candidate.id)

    def _is_member(self, of: Candidate | Judgement) -> bool:
        return (of.seed, of.id) in self.population


def make_order(engine: Engine, seeds: Sequence[Seed], settings: Settings, population: Population) -> Queue:
    """Return the order of a review. Raises InputError if the index does not support it."""
    if settings.learns:
        return FeedbackOrder(engine, seeds, population, seed=settings.seed)
    return MergedOrder(engine, seeds, settings, population)


def make_rule(settings: Settings, population: int, order: Queue) -> Rule[Any]:
    """Return the stopping rule of a review. Raises InputError for an unknown name, ConfigError for a bad option."""
    options = {"audit": settings.audit, **settings.rule_options}
    if not settings.learns:
        options["certificate"] = "exact"
    name = settings.rule or ("expected" if settings.unit == "pairs" else "urn")
    rule = stopping.make(name, population, settings.target, options)
    if isinstance(rule, ExpectedLinks) and isinstance(order, MergedOrder):
        rule.look = order.left
    return rule
