"""The replications: news similarity, sentence pairs, BUCC 2015 and the tables over all pairs. Nothing imports them."""

__all__: list[str] = []
