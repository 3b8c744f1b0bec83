"""Bilingual lexicons: read from dictionaries, or induced from linked pages."""

__all__: list[str] = []
