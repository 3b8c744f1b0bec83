"""Vector search: exact (a certified scan or FAISS) or approximate (a graph or compressed codes)."""

__all__: list[str] = []
