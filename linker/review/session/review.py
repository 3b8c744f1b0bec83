"""A review: its next document, its judgements and its progress. All persistent state is in the ledger."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from linker.review import stopping
from linker.review.interface import (
    AUDITED,
    UNREAD,
    Candidate,
    JudgedMeanwhileError,
    Judgement,
    LanguageCount,
    Phase,
    Progress,
    StopState,
    Verdict,
)
from linker.review.learning.doubts import Doubt, chances, doubted, log_odds
from linker.review.learning.feedback import FeedbackOrder
from linker.review.session.checking import check, check_row, with_seed
from linker.review.session.reading import Reading
from linker.review.session.together import batch_size, copied, original
from linker.review.stopping.rules import Controls
from linker.review.wording import DOCUMENTS, PAIRS, Sentence, say


class Review(Reading):
    """One review of an index. Several threads may use it, each for its own reader.

    The ledger's settings give the unit: in a `topic`, all seeds describe one story, a document is judged once and the
    order learns from each judgement; with `pairs`, every seed has links of its own. If a process dies, only the record
    of who had which document open is lost. That record is kept by `holder`, such as a session of the page, so that
    readers may change their names, and two with the same name get different documents; by default, the holder is the
    reviewer's name.
    """

    def candidate(self, id_: str, seed: str) -> Candidate:
        """Return a document named by a reader as a candidate, with its seed or, in a topic, with the most similar one.

        Raises InputError if a review of pairs does not have the seed, UnknownIdError if the index does not have the
        document.
        """
        is_known = self.settings.unit == "pairs" or any(s.id == seed for s in self.seeds)
        candidate = Candidate(seed if is_known else "", id_, 0.0, phase="search")
        return with_seed(candidate, self.seeds, self.settings.unit, self.beside)

    def standing(self, candidate: Candidate, reviewer: str = "") -> Judgement | None:
        """Return the judgement that currently counts for a document, or None if it was not read.

        If two reviewers judge everything blind, it is this reviewer's own.
        """
        with self._lock:
            key = self._key(candidate)
            if self.settings.double:
                own = self.ledger.judgements(reviewer)
                return next((j for j in own if self._key(j) == key and j.verdict != "skip"), None)
            return self._tally.standing[key] if self._tally.is_read(key) else None

    def judge(
        self,
        candidate: Candidate,
        verdict: Verdict,
        reviewer: str = "",
        note: str = "",
        tags: Iterable[str] = (),
        *,
        copies: Iterable[str] = (),
        holder: str = "",
        seen: str | None = None,
    ) -> Progress:
        """Store a verdict, replacing an earlier one on the document, and return the review's progress.

        A document that the review handed out counts as read in the queue or the audit; any other counts as found by a
        search outside the queue. `copies`: ids of near-duplicates; unjudged ones get the same verdict, and one `undo`
        undoes all. `seen`: the verdict that the reviewer saw on this document, or an empty string; raises
        JudgedMeanwhileError if it has changed since. Repeating the same verdict stores nothing. A relevant document in
        an audit ends the audit. Raises InputError if the verdict, the seed or the document does not exist, or the
        ledger cannot be written.
        """
        with self._lock:
            candidate = with_seed(candidate, self.seeds, self.settings.unit, self.beside)
            check(candidate, verdict, reviewer, self.population)
            holder, key, tags = holder or reviewer, self._key(candidate), tuple(tags)
            before = self.standing(candidate, reviewer)
            if self._open.of(key) is None and self._is_repeated(
                before, candidate, (verdict, reviewer, note, tags)
            ):
                return self.progress()
            if seen is not None and seen != (before.verdict if before else ""):
                raise JudgedMeanwhileError(before)
            offer = self._as_offered(candidate, before)
            phase = self.phase
            decision = Judgement(
                candidate.seed, candidate.id, verdict, reviewer, note, tags, offer.score, offer.probability,
                self._order.version, offer.phase,
            )  # fmt: skip
            unread = [
                i
                for i in copies
                if (key[0], i) not in self._tally.verdicts and (key[0], i) in self.population
            ]
            for judgement in self.ledger.add_all(copied(decision, unread)):
                self._take(judgement, holder)
            if verdict == "skip" and key not in self._second_time:
                self._skipped.append(replace(offer, phase="queue"))
            if phase == "audit" and self.phase != "audit":
                self._take_back_all()
            return self.progress()

    def say_of_row(
        self, seed: str, verdict: Verdict, reviewer: str = "", note: str = "", holder: str = ""
    ) -> None:
        """Store that a seed has no match ("not"), or is left for later ("skip"). Raises the InputErrors of `judge`."""
        with self._lock:
            check_row(seed, verdict, reviewer, self.seeds)
            self._open.take_back(holder or reviewer)
            self.ledger.add_all([Judgement(seed, "", verdict, reviewer, note, phase="row")])

    def accept(self, links: Iterable[Candidate], model: str, reviewer: str = "", note: str = "") -> int:
        """Store links that nobody has read, and return how many; one `undo` undoes all of them.

        They are matches of their rows, but count neither in the curve nor in the method note. Raises the InputErrors of
        `judge`.
        """
        with self._lock:
            links, time = tuple(links), datetime.now(UTC).isoformat(timespec="milliseconds")
            for link in links:
                check(link, "relevant", reviewer, self.population)
            self.ledger.add_all(
                Judgement(
                    c.seed, c.id, "relevant", reviewer, note, (), c.score, c.probability, model, "accepted", time
                )
                for c in links
            )  # fmt: skip
            return len(links)

    def _is_repeated(
        self, before: Judgement | None, candidate: Candidate, said: tuple[Verdict, str, str, tuple[str, ...]]
    ) -> bool:
        """Return whether the same judgement was made already, because a form may be sent twice."""
        if before is None:
            return said[0] == self._tally.verdicts.get(self._key(candidate))
        known = (before.verdict, before.reviewer, before.note, before.tags)
        return known == said and before.seed == candidate.seed

    def _as_offered(self, candidate: Candidate, before: Judgement | None) -> Candidate:
        """Return a candidate as it was handed out or read before, or else as one that a search found."""
        if held := self._open.of(self._key(candidate)):
            # If another reviewer has ended the audit, this document belongs to no sample.
            is_late = held.phase in AUDITED and self.phase != "audit" and before is None
            return replace(held, seed=candidate.seed, phase="search" if is_late else held.phase)
        if before is not None:
            return replace(
                candidate, score=before.score or 0.0, probability=before.probability, phase=before.phase
            )
        return replace(candidate, phase="search")

    def _take(self, judgement: Judgement, holder: str) -> None:
        key = self._key(judgement)
        self._open.release(key, holder if self.settings.double else None)
        if not self._tally.add(judgement):
            self._restart()
        elif judgement.phase == "control" and isinstance(self._tally.rule, Controls):
            self._controls[key] = judgement
        elif key not in self._controls:
            self._order.tell(judgement)

    def undo(self, reviewer: str = "", holder: str = "") -> Judgement | None:
        """Undo the reviewer's last judgement, with those on copies that were made together with it.

        Returns the judgement, whose document comes next again, or None if the reviewer has judged nothing.
        """
        with self._lock:
            judgement, holder = None, holder or reviewer
            for _ in range(batch_size(self.ledger.judgements(reviewer, rows=True))):
                judgement = self.ledger.undo(reviewer)
            if judgement is None:
                return None
            self._restart()
            self._take_back(holder)
            if judgement.phase in UNREAD:
                return judgement
            score, probability = judgement.score or 0.0, judgement.probability
            candidate = Candidate(judgement.seed, judgement.id, score, 0, probability, judgement.phase)
            self._undone.setdefault(holder, deque()).appendleft(candidate)
            return judgement

    def _take_back(self, holder: str) -> None:
        """End a reader's reservation, so that the next reader gets the document; an audit may draw it again."""
        held = self._open.take_back(holder)
        if held is not None and held.id and held.phase in ("queue", "search"):
            self._returned.appendleft(held)

    def begin_audit(self) -> None:
        """Draw at random from the unread documents from now on, until the stopping rule's audit is complete."""
        with self._lock:
            self._audit = {"number": self._audit["number"] + 1, "before": self._tally.audited}
            self.ledger.set("audit_now", self._audit)
            self._enter("audit")

    def resume(self) -> None:
        """Return from the audit to the queue."""
        with self._lock:
            self._enter("queue")

    def _enter(self, phase: Phase) -> None:
        self.ledger.set("phase", phase)
        self._phase = phase
        self._take_back_all()

    def _take_back_all(self) -> None:
        for holder in self._open:
            self._take_back(holder)

    def enough(self) -> str:
        """Return the reason to stop, from the settings' `until` or the stopping rule; an empty string to continue."""
        with self._lock:
            until, stop = self.settings.until, self.stop
            if until and not self.settings.per_seed and self._tally.found >= until:
                return say("%(until)s relevant found", until=until)
            return stop.reason if stop.estimated else ""

    def offer(self) -> stopping.AuditOffer:
        """Return the offer of the next audit."""
        with self._lock:
            return stopping.offer_of(self._tally.rule)

    def chances(self) -> dict[tuple[str, str], float]:
        """Return P(relevant) of each judged document by seed and id, estimated without its own verdict.

        If the order learns, its model is trained without the document and its copies; empty if too few are judged.
        If the order does not learn, the probability is that of the index when the document was judged.
        """
        with self._lock:
            judged = self._decisions()
            if not isinstance(self._order, FeedbackOrder):
                return {(j.seed, j.id): j.probability for j in judged if j.probability is not None}
            return chances(judged, self._scores(judged))

    def doubts(self) -> list[Doubt] | None:
        """Return the verdicts that deserve another look, those that are most probably wrong first; None: too few exist.

        They are based on the same scores as `chances`.
        """
        with self._lock:
            judged = self._decisions()
            return doubted(judged, self._scores(judged))

    def _decisions(self) -> list[Judgement]:
        """Return one judgement per document, or pair, whose verdict is "relevant" or "not"."""
        return [j for j in self._tally.standing.values() if j.verdict in ("relevant", "not")]

    def _scores(self, judged: Sequence[Judgement]) -> dict[tuple[str, str], float]:
        """Return a score of each judged document, by seed and id, that does not depend on its verdict."""
        if not isinstance(self._order, FeedbackOrder):
            return {(j.seed, j.id): log_odds(j.probability) for j in judged if j.probability is not None}
        known = self._order.held_out({j.id: original(j) for j in judged})
        return {(j.seed, j.id): known[j.id] for j in judged if j.id in known}

    def progress(self) -> Progress:
        """Return the review's progress."""
        with self._lock:
            tally, pairs = self._tally, self.settings.unit == "pairs"
            return Progress(
                tally.read, tally.found, tally.counts["maybe"], tally.counts["skip"], self.population.size,
                tally.curve, self.stop, self.phase, stopping.price_of(tally.rule).about(PAIRS if pairs else DOCUMENTS),
                tally.prior, tally.drawn, len(self.seeds) if pairs else 0, len(self.population.rows),
                tally.rule.ahead, tally.rule.total if self.settings.learns else None, tally.rule.audit.front[0],
                tally.rule.audit.left if self.phase == "audit" else 0,
            )  # fmt: skip

    def languages(self) -> list[LanguageCount]:
        """Return the counts of each language; none if the order does not learn or the index has no lexicon."""
        with self._lock:
            if not isinstance(self._order, FeedbackOrder):
                return []
            return self._tally.languages(self._order.foreign, self.population)

    def total(self, seed: str) -> int | None:
        """Return how many candidates a seed has; None if the order ranks the whole index. May need a deep search."""
        with self._lock:
            return self._order.total(seed)

    @property
    def degraded(self) -> str:
        """The component unavailable to the order, or an empty string."""
        return self._order.degraded

    @property
    def stop(self) -> StopState:
        """The stopping rule's current state."""
        state = self._tally.rule.state
        if self.settings.unit == "pairs" and isinstance(state.reason, Sentence):
            return replace(state, reason=state.reason.about(PAIRS))
        return state
