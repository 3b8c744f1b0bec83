"""Ids, vectors, text and filters: exact and approximate search, BM25, fusion, and a store that survives faults."""
