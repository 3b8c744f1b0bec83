"""The BUCC 2015 shared task: preparing its pages, and its table of results."""

__all__: list[str] = []
