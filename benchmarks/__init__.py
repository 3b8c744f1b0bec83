"""One file a question; each is run as `python -m benchmarks.NAME` from the repository root."""
