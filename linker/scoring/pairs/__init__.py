"""Scores for pairs of texts: the Cross-BERT-GRU, news similarity with entities, and their common base."""

__all__: list[str] = []
