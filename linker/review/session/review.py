"""A review: which document comes next, what was judged, and how far it is. All that lasts is in the ledger."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from linker.errors import InputError
from linker.review import stopping
from linker.review.interface import (
    VERDICTS,
    Candidate,
    Judgement,
    Phase,
    Progress,
    Read,
    Seed,
    StopState,
    Verdict,
)
from linker.review.population import Population
from linker.review.seeds import Nearest
from linker.review.session.making import make_order, make_rule
from linker.review.session.tally import Key, Tally
from linker.review.settings import Settings
from linker.review.stopping.rules import Controls
from linker.review.wording import say

if TYPE_CHECKING:
    from linker.engine import Engine

CONTROLS = 0  # number of the random order of controls; audits count from 1


class Records(Protocol):
    """What a review needs of its ledger; `linker.review.ledger.Ledger` is one."""

    @property
    def seeds(self) -> Sequence[Seed]:
        """The texts whose links are sought, in order."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Values by name; `linker.review.settings` says which a review reads."""
        ...

    def set(self, key: str, value: Any) -> None:
        """Store a setting."""
        ...

    def add(self, judgement: Judgement) -> Judgement:
        """Store a judgement and return it with its time."""
        ...

    def undo(self, reviewer: str) -> Judgement | None:
        """Take back the reviewer's last standing judgement and return it, or None where there is none."""
        ...

    def judgements(self, reviewer: str | None = None) -> Sequence[Judgement]:
        """Return the standing judgements in the order they were made."""
        ...


class Review:
    """One review of an index. Several threads may use it, each for its own reviewer.

    The unit is what the ledger's settings say: in a `topic`, all seeds describe one story, a document is judged once
    and the order learns from each judgement; with `pairs`, every seed has its own links. A process that dies loses
    nothing but who had which document before them.
    """

    def __init__(self, engine: Engine, ledger: Records) -> None:
        self.engine, self.ledger = engine, ledger
        self._lock = threading.RLock()
        self.refresh()

    def refresh(self) -> None:
        """Read seeds, settings and judgements from the ledger again, after another process has changed them.

        Raises InputError where a setting cannot be used.
        """
        with self._lock:
            stored = self.ledger.settings
            self.settings = Settings.of(stored)
            self._phase: Phase = "audit" if stored.get("phase") == "audit" else "queue"
            unaudited = {"number": 0, "before": 0, "size": self.settings.audit}
            self._audit: dict[str, int] = stored.get("audit_now", unaudited)
            self.seeds = tuple(self.ledger.seeds)
            collection = self.engine.collection
            self.population = Population(collection.rows, self.seeds, self.settings)
            self._nearest = Nearest(self.seeds, collection.manifest.analysis)
            self._order = make_order(self.engine, self.seeds, self.settings, self.population)
            self._open: dict[str, Candidate] = {}  # what each reviewer has before them
            self._undone: dict[str, deque[Candidate]] = {}  # what each reviewer has to judge again first
            self._returned: deque[Candidate] = deque()  # what was handed out and taken back unread
            self._second_time: set[Key] = set()  # what was handed out after it had been skipped
            self._restart()
            self._skipped = deque(
                self._shown(seed, id_) for (seed, id_), v in self._tally.verdicts.items() if v == "skip"
            )

    def _restart(self) -> None:
        """Tell the order, and a new stopping rule, of the judgements that stand."""
        names = {"", *(seed.id for seed in self.seeds)}
        standing = [j for j in self.ledger.judgements() if j.seed in names]
        rule = make_rule(self.settings, self.population.size)
        self._tally = Tally(rule, standing, pairs=self.settings.unit == "pairs")
        self._order.restart()
        for judgement in standing:
            if judgement.phase != "control":
                self._order.tell(judgement)
        self._controls = {self._key(j): j for j in standing if j.phase == "control"}

    @property
    def phase(self) -> Phase:
        """Whether documents come from the queue, or are drawn for the audit or as the rule's controls."""
        rule = self._tally.rule
        lacks_controls = isinstance(rule, Controls) and rule.drawn < rule.size
        return "control" if self._phase == "queue" and lacks_controls else self._phase

    def next(self, reviewer: str = "") -> Candidate | None:
        """Return what this reviewer should judge now, the same until it is judged, or None where nothing is left.

        Nobody else has it before them, unless everyone is to judge everything (`double`). Skipped documents come last.
        """
        with self._lock:
            if reviewer not in self._open and (candidate := self._draw(reviewer)):
                self._open[reviewer] = candidate
            return self._open.get(reviewer)

    def _draw(self, reviewer: str) -> Candidate | None:
        if undone := self._undone.get(reviewer):
            return undone.popleft()
        if self.settings.double and (second := self._unseen(reviewer)):
            return second
        if self.phase != "queue":
            return self._drawn()
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
        """Return whether a candidate is unread and before nobody."""
        key = self._key(candidate)
        return not self._tally.is_read(key) and all(self._key(c) != key for c in self._open.values())

    def _unseen(self, reviewer: str) -> Candidate | None:
        """Return the first document that one other reviewer has judged and this one has not."""
        before_others = {self._key(c) for c in self._open.values()}
        for key, reviewers in self._tally.reviewers.items():
            if len(reviewers) == 1 and reviewer not in reviewers and key not in before_others:
                return self._shown(*key)
        return None

    def _reach(self, key: Key) -> None:
        """Let the order learn the verdict on a control that it has come upon by itself; count it for the rule."""
        if control := self._controls.pop(key, None):
            self._order.tell(control)
            if control.relevant:
                self._tally.rule.update(Read(True, "control"))

    def _drawn(self) -> Candidate | None:
        """Return a random unread document, the same after a restart: audit i reads in the i-th random order."""
        phase, audit = self.phase, self._audit
        if phase == "audit" and self._tally.audited - audit["before"] >= audit["size"]:
            return None
        drawn = self.population.at_random(
            [self.settings.seed, audit["number"] if phase == "audit" else CONTROLS],
            lambda seed, id_: self._free(Candidate(seed, id_, 0.0)),
        )
        return self._shown(*drawn, phase=phase) if drawn else None

    def _shown(self, seed: str, id_: str, phase: Phase = "queue") -> Candidate:
        """Return a document that no order proposed, in a topic beside the seed that it resembles most."""
        return Candidate(seed or self._nearest.of(self.engine.document(id_).full_text), id_, 0.0, phase=phase)

    def beside(self, id_: str) -> Candidate:
        """Return a document that a search found as a candidate beside the seed that it resembles most.

        Raises UnknownIdError where it is not in the index.
        """
        return self._shown("", id_, phase="search")

    def _key(self, candidate: Candidate | Judgement) -> Key:
        return (candidate.seed if self.settings.unit == "pairs" else "", candidate.id)

    def judge(
        self,
        candidate: Candidate,
        verdict: Verdict,
        reviewer: str = "",
        note: str = "",
        tags: Iterable[str] = (),
    ) -> Progress:
        """Store a verdict and return how far the review is; a verdict on a document that was judged replaces it.

        The candidate may come from elsewhere: with the phase "search", from a search beside the queue. A relevant
        document in an audit ends the audit. Raises InputError where the verdict or the document does not exist, or the
        ledger cannot be written.
        """
        if verdict not in VERDICTS:
            raise InputError(f"unknown verdict {verdict!r}: choose one of {', '.join(VERDICTS)}")
        if candidate.id not in self.engine:
            raise InputError(f"{candidate.id!r} is not in {self.engine.directory}: nothing was stored")
        with self._lock:
            judgement = self.ledger.add(
                Judgement(
                    candidate.seed, candidate.id, verdict, reviewer, note, tuple(tags), candidate.score,
                    candidate.probability, self._order.version, candidate.phase,
                )
            )  # fmt: skip
            held = self._open.get(reviewer)
            if held is not None and self._key(held) == self._key(candidate):
                del self._open[reviewer]
            if self._tally.add(judgement):
                if judgement.phase == "control":
                    self._controls[self._key(judgement)] = judgement
                else:
                    self._order.tell(judgement)
            else:
                self._restart()
            if verdict == "skip" and self._key(candidate) not in self._second_time:
                self._skipped.append(replace(candidate, phase="queue"))
            ends = judgement.relevant and not self._tally.rule.audit.anytime
            if judgement.phase == "audit" and (ends or self.stop.stop):
                self._enter("queue")
            return self.progress()

    def undo(self, reviewer: str = "") -> Judgement | None:
        """Take back the reviewer's last judgement and return it; its document is the next one again.

        Returns None where the reviewer has judged nothing.
        """
        with self._lock:
            judgement = self.ledger.undo(reviewer)
            if judgement is None:
                return None
            self._restart()
            self._take_back(reviewer)
            score, probability = judgement.score or 0.0, judgement.probability
            candidate = Candidate(judgement.seed, judgement.id, score, 0, probability, judgement.phase)
            self._undone.setdefault(reviewer, deque()).appendleft(candidate)
            if judgement.relevant and judgement.phase == "audit":  # it had ended the audit
                self._enter("audit")
            return judgement

    def _take_back(self, reviewer: str) -> None:
        """Let what a reviewer has before them come again, for whoever asks first; an audit draws its own again."""
        held = self._open.pop(reviewer, None)
        if held is not None and held.phase in ("queue", "search"):
            self._returned.appendleft(held)

    def begin_audit(self, size: int | None = None) -> None:
        """Draw at random from the unread from now on, until `size` were read (by default the settings' `audit`)."""
        with self._lock:
            options = self._tally.rule.options
            all_of_them = self.population.size if options.looks == "any" else options.audit
            number, size = self._audit["number"] + 1, size or all_of_them
            self._audit = {"number": number, "before": self._tally.audited, "size": size}
            self.ledger.set("audit_now", self._audit)
            self._enter("audit")

    def resume(self) -> None:
        """Return from the audit to the queue."""
        with self._lock:
            self._enter("queue")

    def _enter(self, phase: Phase) -> None:
        self.ledger.set("phase", phase)
        self._phase = phase
        for reviewer in list(self._open):
            self._take_back(reviewer)

    def enough(self) -> str:
        """Return why to stop by the settings' `until` or by the stopping rule's estimate, or an empty text."""
        with self._lock:
            until, stop = self.settings.until, self.stop
            if until and not self.settings.per_seed and self._tally.found >= until:
                return say("%(until)s relevant found", until=until)
            return stop.reason if stop.estimated else ""

    def progress(self) -> Progress:
        """Return how far the review is."""
        with self._lock:
            tally = self._tally
            return Progress(
                tally.read, tally.found, tally.counts["maybe"], tally.counts["skip"], self.population.size,
                tally.curve, self.stop, self.phase, stopping.price_of(tally.rule),
            )  # fmt: skip

    def total(self, seed: str) -> int | None:
        """Return how many candidates a seed has; None where the order ranks the whole index. May take a deep search."""
        with self._lock:
            return self._order.total(seed)

    @property
    def degraded(self) -> str:
        """What was unavailable to the order, or an empty text."""
        return self._order.degraded

    @property
    def stop(self) -> StopState:
        """What the stopping rule knows now."""
        return self._tally.rule.state
