"""Search over documents with ids and metadata: vectors, BM25, fusion, and a store that survives faults."""
