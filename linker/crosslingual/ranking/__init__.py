"""Learned rankers over all evidence, with calibrated probabilities."""
