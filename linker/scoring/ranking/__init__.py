"""Learned rankers: trees over features of queries and candidates, and a linear one over lists, with probabilities."""

__all__: list[str] = []
