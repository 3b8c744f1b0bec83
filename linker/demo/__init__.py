"""`make demo`: link posts with articles in a real corpus."""

__all__: list[str] = []
