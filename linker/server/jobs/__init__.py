"""Long work of a review in a separate process: it reports its progress, and if cancelled leaves nothing behind."""

__all__: list[str] = []
