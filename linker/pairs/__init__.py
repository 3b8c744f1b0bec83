"""Scores for pairs of texts: the Cross-BERT-GRU, news similarity with entities, and what both build on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.pairs.backbone import Backbone, load_backbone
    from linker.pairs.data import Pair
    from linker.pairs.translate import Translator, load_translator

__all__ = ["Backbone", "Pair", "Translator", "load_backbone", "load_translator"]
__getattr__ = lazy(
    __name__,
    {
        "Backbone": "linker.pairs.backbone",
        "Pair": "linker.pairs.data",
        "Translator": "linker.pairs.translate",
        "load_backbone": "linker.pairs.backbone",
        "load_translator": "linker.pairs.translate",
    },
)
