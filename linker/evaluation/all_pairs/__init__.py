"""Evaluation over all pairs of articles and tweets: pooled mAP, AUC and r-precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.evaluation.all_pairs.evaluate import evaluate_scores, evaluate_vectors
    from linker.evaluation.all_pairs.result import PairEvaluation

__all__ = ["PairEvaluation", "evaluate_scores", "evaluate_vectors"]
__getattr__ = lazy(
    __name__,
    {
        "PairEvaluation": "linker.evaluation.all_pairs.result",
        "evaluate_scores": "linker.evaluation.all_pairs.evaluate",
        "evaluate_vectors": "linker.evaluation.all_pairs.evaluate",
    },
)
