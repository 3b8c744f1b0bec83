"""Shared by all packages: errors, files, lines, settings, progress, and output for terminals and programs."""

__all__: list[str] = []
