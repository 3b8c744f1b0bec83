"""Scores for pairs of texts: the Cross-BERT-GRU, news similarity with entities, and what both build on."""

__all__: list[str] = []
