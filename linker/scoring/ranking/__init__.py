"""Learned rankers: trees over features of a query and its candidates, a linear one over lists, with probabilities."""

__all__: list[str] = []
