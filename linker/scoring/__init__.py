"""Models learned from links: rankers, scorers of pairs, P(link) and guarantees about it."""

__all__: list[str] = []
