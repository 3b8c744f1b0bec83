"""Scoring pairs of pages, and assigning target pages to source pages."""

__all__: list[str] = []
