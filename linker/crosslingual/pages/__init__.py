"""Pages in one language: their terms, and the surface features that translations share."""

__all__: list[str] = []
