"""The HTTP API: searches, documents and evaluation over open indexes, for programs."""

__all__: list[str] = []
