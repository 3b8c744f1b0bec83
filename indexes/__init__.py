"""Ids, vectors, text and filters: vector search, BM25, fusion, and a store that survives faults."""
