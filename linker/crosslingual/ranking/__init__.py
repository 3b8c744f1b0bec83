"""Learned rankers over all available evidence, with calibrated probabilities."""

__all__: list[str] = []
