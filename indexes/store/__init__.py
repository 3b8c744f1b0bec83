"""The store: documents, the manifest of each committed generation, what is ours in a directory, backups."""
