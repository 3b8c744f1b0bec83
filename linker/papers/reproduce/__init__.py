"""One command per paper: the authors' systems and ours, cell by cell, next to the published figures."""

__all__: list[str] = []
