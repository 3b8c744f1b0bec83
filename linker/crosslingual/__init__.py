"""Linking pages to their counterparts in another language (the systems of BUCC 2015, and ours)."""

__all__: list[str] = []
