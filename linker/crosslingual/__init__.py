"""Linking the texts of two collections, in one language or across two (the systems of BUCC 2015, and ours)."""

__all__: list[str] = []
