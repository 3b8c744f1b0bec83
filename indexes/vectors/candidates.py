"""What proposes rows for an approximate search: the protocol of the graph and of the codes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from indexes.interface import Mask, Matrix, RowArray
from indexes.vectors.pq import Settings

if TYPE_CHECKING:
    from indexes.disk.writing import FileRecord


class CandidateGenerator(Protocol):
    """What stands between a query and the scan of everything."""

    FOURCC: ClassVar[bytes]  # the first bytes of its file
    GRID: ClassVar[Sequence[Settings]]  # the settings that `index tune --recall` tries
    settings: dict[str, float]  # what a search costs against what it finds

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Take in the rows of `flat` (an IndexFlatIP; `vectors` [n, d] is a view of it) not taken in yet."""
        ...

    def cost(self, fetch: int, rows: int) -> float:
        """Return about how many vector comparisons a query costs, when `rows` rows are indexed."""
        ...

    def generate(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Return likely rows [n_queries, fetch or more], filled with −1; only rows that `mask` allows."""
        ...

    def save(self, path: Path) -> FileRecord:
        """Write everything but the raw vectors to a new file, durably; return its record."""
        ...

    def load(self, path: Path, flat: Any) -> int:
        """Read what `save` wrote and return how many rows it knows. Raises DamagedError."""
        ...
