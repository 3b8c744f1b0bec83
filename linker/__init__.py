"""Links texts over a vector index."""

__version__ = "0.1.0"
