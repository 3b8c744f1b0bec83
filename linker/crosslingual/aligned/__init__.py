"""Aligned passages of linked pages, exported for translators."""

__all__: list[str] = []
