"""Learned rankers over all available evidence, with calibrated probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.crosslingual.ranking.auto import Solution, solve
    from linker.crosslingual.ranking.cascade import CascadeEvidence
    from linker.crosslingual.ranking.evidence import AllEvidence
    from linker.crosslingual.ranking.self_training import self_train

__all__ = ["AllEvidence", "CascadeEvidence", "Solution", "self_train", "solve"]
__getattr__ = lazy(
    __name__,
    {
        "AllEvidence": "linker.crosslingual.ranking.evidence",
        "CascadeEvidence": "linker.crosslingual.ranking.cascade",
        "Solution": "linker.crosslingual.ranking.auto",
        "self_train": "linker.crosslingual.ranking.self_training",
        "solve": "linker.crosslingual.ranking.auto",
    },
)
