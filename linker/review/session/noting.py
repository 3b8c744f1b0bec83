"""The method note of a review as it stands."""

from __future__ import annotations

from linker.review.interface import Progress
from linker.review.session.review import Review
from linker.review.stopping import MethodNote, method_note
from linker.review.wording import PAIRS, Sentence, say


def note_of(review: Review) -> MethodNote | None:
    """Return the method note of a review as far as it is, or None where nothing was read."""
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


def _reading_pairs(progress: Progress, audited: int) -> Sentence:
    """Return what was read and found where every seed has links of its own: seeds and documents are what there is."""
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
