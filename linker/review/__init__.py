"""Relevance review by people: which document to read next, what was judged, and when to stop."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.interface import Candidate, Judgement, Seed
    from linker.review.ledger import Entry, Ledger

__all__ = ["Candidate", "Entry", "Judgement", "Ledger", "Seed"]
__getattr__ = lazy(__name__)
