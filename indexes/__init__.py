"""Search over documents with ids and metadata: vectors, BM25, fusion, and a crash-safe store."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.collection import Collection
    from indexes.errors import IndexesError
    from indexes.fusion import Fusion
    from indexes.hybrid import HybridIndex
    from indexes.interface import Document, Filter, Hits
    from indexes.text.bm25 import Bm25Index
    from indexes.vectors.faiss_index import FaissIndex
    from indexes.writer import Writer

__all__ = [
    "Bm25Index",
    "Collection",
    "Document",
    "FaissIndex",
    "Filter",
    "Fusion",
    "Hits",
    "HybridIndex",
    "IndexesError",
    "Writer",
]
__getattr__ = lazy(__name__)
