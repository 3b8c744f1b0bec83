"""BM25: analysis, vocabulary, posting lists and scoring."""

__all__: list[str] = []
