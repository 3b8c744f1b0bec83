"""The store: documents, the manifest of each committed generation, the files that an index owns, and backups."""

__all__: list[str] = []
