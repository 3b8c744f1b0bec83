"""Vectors computed elsewhere: read from .npy and FAISS files, and exported for other tools."""

from linker.corpora.vectors.exporting import export_vectors
from linker.corpora.vectors.reading import GivenVectors, read_matrix, read_vectors

__all__ = ["GivenVectors", "export_vectors", "read_matrix", "read_vectors"]
