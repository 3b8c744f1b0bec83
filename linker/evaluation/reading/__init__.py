"""Fast reading of judgements and runs in TREC's formats, with exactly trec_eval's results."""

__all__: list[str] = []
