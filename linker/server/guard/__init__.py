"""What page and API demand of whoever asks: tokens, sessions, names of hosts, sizes, rates and patience."""

__all__: list[str] = []
