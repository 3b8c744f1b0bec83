"""Read judgements and runs in TREC's formats, fast and exactly as trec_eval does."""

__all__: list[str] = []
