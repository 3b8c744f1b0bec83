"""The candidate generator of each approximate kind of vectors, and the kind that `auto` chooses by size."""

from __future__ import annotations

from pathlib import Path

from indexes.vectors.faiss_files import damaged, first_bytes
from indexes.vectors.hnsw import Hnsw
from indexes.vectors.pq import IvfPq, PqScan

# numbers of rows from which `auto` approximates, and from which it uses cells
AUTO_EXACT, AUTO_CELLS = 200_000, 1_000_000
GENERATORS: dict[str, type[Hnsw] | type[IvfPq] | type[PqScan]] = {"hnsw": Hnsw, "ivfpq": IvfPq, "pq": PqScan}


def kind_by_size(rows: int) -> str:
    """Return the kind that `auto` builds: codes, built in seconds with good recall; cells from a million rows."""
    return "pq" if rows < AUTO_CELLS else "ivfpq"


def kind_of(path: Path) -> str:
    """Return the kind of a saved structure by its first bytes. Raises DamagedError if it is not one of ours."""
    start = first_bytes(path)
    for name, generator in GENERATORS.items():
        if start in generator.FOURCCS:
            return name
    raise damaged(path, "it is not a graph or code file of a known kind")
