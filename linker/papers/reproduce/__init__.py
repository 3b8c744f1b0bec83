"""One command a paper: the authors' systems and ours, cell by cell, beside what the authors published."""

__all__: list[str] = []
