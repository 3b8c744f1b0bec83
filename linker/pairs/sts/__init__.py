"""Scorers of sentence pairs: the Cross-BERT-GRU and frozen features."""
