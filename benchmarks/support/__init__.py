"""Data, rivals and result records that several benchmarks share."""
