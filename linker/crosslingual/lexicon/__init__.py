"""Bilingual lexicons: read from dictionaries, or induced from linked pages."""
