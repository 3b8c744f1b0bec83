"""P(link): the probability that a hit is relevant, learned from judged links, and thresholds that keep a promise."""

__all__: list[str] = []
