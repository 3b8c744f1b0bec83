"""Vector search: exact (a certified scan or FAISS) or approximate (a graph or compressed codes)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.vectors.candidates import CandidateGenerator
    from indexes.vectors.certified import ByteScan
    from indexes.vectors.exact import ExactIndex
    from indexes.vectors.faiss_index import FaissIndex

__all__ = ["ByteScan", "CandidateGenerator", "ExactIndex", "FaissIndex"]
__getattr__ = lazy(
    __name__,
    {
        "ByteScan": "indexes.vectors.certified",
        "CandidateGenerator": "indexes.vectors.candidates",
        "ExactIndex": "indexes.vectors.exact",
        "FaissIndex": "indexes.vectors.faiss_index",
    },
)
