"""Long-running jobs in separate processes: they report their progress and, if cancelled, leave nothing behind."""

__all__: list[str] = []
