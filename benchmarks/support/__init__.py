"""Data, peers and records that several benchmarks share."""
