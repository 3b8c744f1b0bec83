"""`make demo`: the main task on a real corpus."""

__all__: list[str] = []
