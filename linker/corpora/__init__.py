"""Read corpora and queries from files; every unusable record becomes a `BadLine` with the reason."""

from linker.corpora.previews import Preview, columns_of
from linker.corpora.reading import Query, read_corpus, read_queries
from linker.corpora.records import BadLine, Columns
from linker.corpora.trials import preview

__all__ = ["BadLine", "Columns", "Preview", "Query", "columns_of", "preview", "read_corpus", "read_queries"]
