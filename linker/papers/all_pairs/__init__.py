"""Evaluation over all pairs of articles and tweets: pooled mAP, AUC and r-precision."""

__all__: list[str] = []
