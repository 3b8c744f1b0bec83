"""Vector search: exact (a certified scan or FAISS) or approximate (a graph or compressed codes)."""
