"""Files: read as untrusted data, written so that they survive a crash."""

__all__: list[str] = []
