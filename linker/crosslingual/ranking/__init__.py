"""Learned rankers over all available evidence, with calibrated probabilities."""
