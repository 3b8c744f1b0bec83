"""Relevance review by a person: which document to read next, what was judged, and when to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.finding import Candidate, FindReport, StopRule, candidates, find
    from linker.review.interface import Judgement
    from linker.review.ledger import Entry, Ledger, Seed

__all__ = [
    "Candidate",
    "Entry",
    "FindReport",
    "Judgement",
    "Ledger",
    "Seed",
    "StopRule",
    "candidates",
    "find",
]
__getattr__ = lazy(
    __name__,
    {
        "Candidate": "linker.review.finding",
        "Entry": "linker.review.ledger",
        "FindReport": "linker.review.finding",
        "Judgement": "linker.review.interface",
        "Ledger": "linker.review.ledger",
        "Seed": "linker.review.ledger",
        "StopRule": "linker.review.finding",
        "candidates": "linker.review.finding",
        "find": "linker.review.finding",
    },
)
