"""Reading of judgements and runs in TREC's formats, exactly as trec_eval does and fast."""

__all__: list[str] = []
