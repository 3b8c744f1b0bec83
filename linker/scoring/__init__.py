"""What is learned from links: rankers, scorers of pairs, P(link) and what may be promised of it."""

__all__: list[str] = []
