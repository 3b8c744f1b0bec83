"""The learned ranker: trees over features of a query and its candidates, with calibrated probabilities."""

__all__: list[str] = []
