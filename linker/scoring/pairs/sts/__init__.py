"""Scorers of sentence pairs: the Cross-BERT-GRU, and a head over the vectors of a frozen encoder."""

__all__: list[str] = []
