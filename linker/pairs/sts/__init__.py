"""Scorers of sentence pairs: the Cross-BERT-GRU, and a head over the vectors of a frozen encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.pairs.sts.cross_config import StsConfig
    from linker.pairs.sts.cross_encoder import CrossBertGru, CrossEncoder
    from linker.pairs.sts.scorer import PairScorer

__all__ = ["CrossBertGru", "CrossEncoder", "PairScorer", "StsConfig"]
__getattr__ = lazy(
    __name__,
    {
        "CrossBertGru": "linker.pairs.sts.cross_encoder",
        "CrossEncoder": "linker.pairs.sts.cross_encoder",
        "PairScorer": "linker.pairs.sts.scorer",
        "StsConfig": "linker.pairs.sts.cross_config",
    },
)
