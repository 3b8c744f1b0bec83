"""Scoring pairs of pages, and assigning target pages to source pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.crosslingual.scoring.candidates import Candidates, PagePairScorer, nearest
    from linker.crosslingual.scoring.comparability import comparability
    from linker.crosslingual.scoring.hapax import shared_hapaxes

__all__ = ["Candidates", "PagePairScorer", "comparability", "nearest", "shared_hapaxes"]
__getattr__ = lazy(
    __name__,
    {
        "Candidates": "linker.crosslingual.scoring.candidates",
        "PagePairScorer": "linker.crosslingual.scoring.candidates",
        "comparability": "linker.crosslingual.scoring.comparability",
        "nearest": "linker.crosslingual.scoring.candidates",
        "shared_hapaxes": "linker.crosslingual.scoring.hapax",
    },
)
