"""Requirements of page and API on clients: tokens, sessions, host names, sizes, rates and deadlines."""

__all__: list[str] = []
