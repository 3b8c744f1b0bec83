"""Long work of a review in a process of its own: it tells how far it is, and a cancelled one leaves nothing behind."""

__all__: list[str] = []
