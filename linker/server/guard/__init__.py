"""What the page and the API require of clients: tokens, sessions, host names, sizes, rates and deadlines."""

__all__: list[str] = []
