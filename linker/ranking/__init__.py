"""The learned ranker: trees over features of a query and its candidates, with calibrated probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.ranking.folder import load
    from linker.ranking.ranker import Ranker

__all__ = ["Ranker", "load"]
__getattr__ = lazy(__name__, {"Ranker": "linker.ranking.ranker", "load": "linker.ranking.folder"})
