"""The routes of the API, one module per resource; each has a `router`."""

__all__: list[str] = []
