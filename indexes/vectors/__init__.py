"""Vector search: exact by a certified scan or FAISS, approximate by a graph or by codes."""
