"""The method note and the progress of a review at its current stage."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from linker.review.interface import Progress
from linker.review.learning.doubts import Doubt
from linker.review.rows.states import Row, counts
from linker.review.session.review import Review
from linker.review.stopping import MethodNote, by_name, method_note
from linker.review.wording import PAIRS, Sentence, joined, say


def note_of(review: Review) -> MethodNote | None:
    """Return the method note of a review at its current stage, or None if nothing was read."""
    progress, settings = review.progress(), review.settings
    if not progress.read:
        return None
    audited = progress.audited
    alpha = settings.rule_options.get("alpha", 0.05)
    if not progress.seeds:
        return method_note(progress, settings.target, audited, alpha=alpha)
    note = method_note(
        progress, settings.target, audited, alpha=alpha, reading=_reading_pairs(progress, audited)
    )
    return MethodNote(note.text, tuple(caution.about(PAIRS) for caution in note.cautions))


def facts_of(review: Review) -> dict[str, Any]:
    """Return a review's progress, as JSON values.

    According to the random reads, at the rule's confidence, at most `most` documents are relevant in all, and at most
    `left` of them are unread; `certified`: the recall that follows. `by_order`: the certificate that relies on an
    assumption about the order (`OrderCertificate`). `total`: the estimated number of relevant documents in all, between
    `total_low` and `total_high`. `ahead`: reads without a find until the rule considers the target reached. Each is
    None if it is not known. `price` says what certainty would cost. `languages`: see `Review.languages`. `doubts`: the
    verdicts that deserve another look, those most probably wrong first.
    """
    progress = review.progress()
    stop = progress.stop
    return {
        "read": progress.read, "population": progress.population, "found": progress.found,
        "random": progress.audited, "estimated": stop.estimated, "certified": stop.certified, "left": stop.left,
        "by_order": stop.by_order and asdict(stop.by_order),
        "most": None if stop.left is None else progress.found + stop.left, "ahead": progress.ahead,
        **by_name(progress.total), "price": progress.price,
        "languages": [asdict(counts) for counts in review.languages()],
        "doubts": [_doubt(doubt) for doubt in review.doubts() or ()],
    }  # fmt: skip


def _doubt(doubt: Doubt) -> dict[str, Any]:
    said = doubt.judgement
    return {"seed": said.seed, "id": said.id, "verdict": said.verdict, "probability": doubt.probability}


def _reading_pairs(progress: Progress, audited: int) -> Sentence:
    """Return a sentence on what was read and found if every seed has links of its own."""
    counts = {"seeds": progress.seeds, "documents": progress.documents, "found": progress.found}
    if progress.read >= progress.population:
        return say(
            "For %(seeds)s seeds and %(documents)s documents, we read every pair and found %(found)s relevant.",
            **counts,
        )
    if not audited:
        return say(
            "For %(seeds)s seeds, we looked for links among %(documents)s documents; we read %(read)s pairs and found "
            "%(found)s relevant.",
            read=progress.read, **counts,
        )  # fmt: skip
    return say(
        "For %(seeds)s seeds, we looked for links among %(documents)s documents; we read %(read)s pairs, %(audited)s "
        "of them drawn at random from what was still unread, and found %(found)s relevant.",
        read=progress.read, audited=audited, **counts,
    )  # fmt: skip


def note_of_rows(rows: Iterable[Row], documents: int) -> MethodNote | None:
    """Return the method note for matching rows, which counts rows instead of documents; None until one is decided."""
    rows = list(rows)
    found, accepted = counts(rows), sum(row.accepted for row in rows)
    if found["open"] == len(rows):
        return None
    sentences = [
        say(
            "For each of %(rows)s rows, we looked for a match among %(documents)s documents. Matched: %(matched)s; "
            "without a match: %(none)s; undecided: %(open)s.",
            rows=len(rows), documents=documents, matched=found["matched"], none=found["none"], open=found["open"],
        )
    ]  # fmt: skip
    cautions = []
    if found["open"]:
        cautions.append(
            say("Do not write that every row was decided: %(open)s are still open.", open=found["open"])
        )
    if accepted:
        sentences.append(
            say("Matches accepted unread, by their probability: %(accepted)s.", accepted=accepted)
        )
        cautions.append(
            say(
                "Do not write that every match was read: %(accepted)s were accepted unread.",
                accepted=accepted,
            )
        )
    if found["none"]:
        cautions.append(
            say(
                "“Without a match” means that none was found among the candidates and by searching, not that none "
                "exists."
            )
        )
    cautions.append(
        say("A match is what the reviewers judged to be one: no figure here covers wrong judgements.")
    )
    return MethodNote(joined(sentences), tuple(cautions))
