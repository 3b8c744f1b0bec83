"""The candidate generator of each approximate kind of vectors, and the kind that `auto` chooses by size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from indexes.interface import Mask, Matrix, RowArray
from indexes.vectors.faiss_files import damaged, first_bytes
from indexes.vectors.hnsw import Hnsw
from indexes.vectors.pq import IvfPq, PqScan, Settings

if TYPE_CHECKING:
    from indexes.disk.writing import FileRecord

# numbers of rows from which `auto` approximates, and from which it uses cells
AUTO_EXACT, AUTO_CELLS = 200_000, 1_000_000
GENERATORS: dict[str, type[Hnsw] | type[IvfPq] | type[PqScan]] = {"hnsw": Hnsw, "ivfpq": IvfPq, "pq": PqScan}


class CandidateGenerator(Protocol):
    """Generates rows that are likely to be among the best, so that a search need not scan all rows."""

    # first bytes of its files: those that it writes, then others that it can read
    FOURCCS: ClassVar[Sequence[bytes]]
    GRID: ClassVar[Sequence[Settings]]  # the settings that `index tune --recall` tries
    settings: dict[str, float]  # settings that trade the cost of a search against its recall

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Index the new rows of `flat` (an IndexFlatIP); `vectors`, float32 [n, d], is a view of all its rows."""
        ...

    def cost(self, fetch: int, rows: int) -> float:
        """Return the approximate cost of one query over `rows` indexed rows, in vector comparisons."""
        ...

    def generate(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Return likely top rows for `queries` [n, d] that `mask` allows, int64 [n, `fetch` or more]; −1 is padding."""
        ...

    def save(self, path: Path) -> FileRecord:
        """Write everything except the raw vectors durably to a new file and return its record. Raises IndexesError."""
        ...

    def load(self, path: Path, flat: Any) -> int:
        """Read what `save` wrote and return the number of rows in it. Raises DamagedError if the file is invalid."""
        ...


def kind_by_size(rows: int) -> str:
    """Return the kind that `auto` builds: codes (built in seconds, with good recall), in cells from a million rows."""
    return "pq" if rows < AUTO_CELLS else "ivfpq"


def kind_of(path: Path) -> str:
    """Return the kind of a saved structure by its first bytes. Raises DamagedError if it is not one of ours."""
    start = first_bytes(path)
    for name, generator in GENERATORS.items():
        if start in generator.FOURCCS:
            return name
    raise damaged(path, "it is not a graph or code file of a known kind")
