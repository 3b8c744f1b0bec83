"""The method note of a review as it stands."""

from __future__ import annotations

from linker.review.session.review import Review
from linker.review.stopping import MethodNote, method_note


def note_of(review: Review) -> MethodNote | None:
    """Return the method note of a review as far as it is, or None where nothing was read."""
    progress, settings = review.progress(), review.settings
    if not progress.read:
        return None
    standing = review.ledger.judgements()
    audited = sum(j.phase == "audit" and j.verdict != "skip" for j in standing)
    return method_note(progress, settings.target, audited, alpha=settings.rule_options.get("alpha", 0.05))
