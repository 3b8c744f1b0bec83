"""BM25: analysis, vocabulary, posting lists and scoring."""
