"""BM25: analysis, vocabulary, posting lists and scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.text.analysis import Analysis
    from indexes.text.bm25 import Bm25Index

__all__ = ["Analysis", "Bm25Index"]
__getattr__ = lazy(
    __name__,
    {"Analysis": "indexes.text.analysis", "Bm25Index": "indexes.text.bm25"},
)
