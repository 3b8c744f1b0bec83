"""Row numbers of hits: those of the directory or, for an index only on a cluster, numbers assigned as needed."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from indexes.interface import Mask, RowArray
from indexes.rows import Rows

FEW = 10_000  # results of up to this many documents always fit into memory


class Numbers(Protocol):
    """The row of each hit, and the order of hits."""

    @property
    def order(self) -> Sequence[Mapping[str, str]]:
        """The server's sort keys: the score and, for ties, the field that orders the rows."""

    def __len__(self) -> int:
        """Return about how many documents there are."""

    def width(self, k: int) -> int:
        """Return the maximum number of documents in a result, at most k."""

    def of(self, hits: Sequence[Sequence[Any]]) -> RowArray:
        """Return the rows, int64 [n], of n hits by their sort values; −1 for hits to be left out."""


class ByRow:
    """The rows of a directory, stored as a field of the server's documents."""

    order = ({"_score": "desc"}, {"row": "asc"})

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def width(self, k: int) -> int:
        """Return k, or the number of documents if that is smaller."""
        return min(k, len(self))

    def of(self, hits: Sequence[Sequence[Any]]) -> RowArray:
        """Return the rows of hits; −1 if not live here, since the server may have newer or removed documents."""
        rows = np.fromiter((hit[1] for hit in hits), dtype=np.int64, count=len(hits))
        known: Mask = rows < len(self._rows.ids)
        mask = self._rows.mask()
        if mask is not None:
            known[known] &= mask[rows[known]]
        return np.where(known, rows, -1)


class ByStamp:
    """Rows that `number` assigns to ids and stamps (−1 for newer documents); `about` counts them approximately."""

    order = ({"_score": "desc"}, {"stamp": "asc"}, {"id": "asc"})

    def __init__(
        self, number: Callable[[Sequence[str], Sequence[int]], RowArray], about: Callable[[], int]
    ) -> None:
        self._number, self._about = number, about

    def __len__(self) -> int:
        return self._about()

    def width(self, k: int) -> int:
        """Return k, since the documents are not counted for each search."""
        return k

    def of(self, hits: Sequence[Sequence[Any]]) -> RowArray:
        """Return the rows of hits, by their ids and stamps."""
        return self._number([hit[2] for hit in hits], [hit[1] for hit in hits])


class HitRows(Rows):
    """Row numbers, assigned to documents as a search finds them."""

    def __init__(self, count: Callable[[], int]) -> None:
        """`count` returns the number of documents of the index."""
        super().__init__()
        self.ids: list[str] = []
        self._count = count
        self._stamps: list[int] = []
        self._numbering = threading.Lock()  # both retrievers of a search find documents concurrently

    def at_most(self, k: int) -> int:
        """Return k, or the number of the index's documents (at least 1) if that is smaller."""
        return k if k <= FEW else min(k, max(1, self._count()))

    def find(self, ids: Sequence[str]) -> RowArray:
        """Return the rows of documents, int64 [n], whether or not they have been found before."""
        return self.number(ids, [0] * len(ids))

    def locate(self, ids: Sequence[str]) -> RowArray:
        """Return the rows of documents, int64 [n], that a result contained."""
        return self.find(ids)

    def number(self, ids: Sequence[str], stamps: Sequence[int]) -> RowArray:
        """Return the rows of documents, int64 [n]; new documents get the next rows."""
        rows = np.empty(len(ids), dtype=np.int64)
        with self._numbering:
            lookup = self._lookup()
            for place, (id_, stamp) in enumerate(zip(ids, stamps, strict=True)):
                row = lookup.setdefault(id_, len(self.ids))
                if row == len(self.ids):
                    self.ids.append(id_)
                    self._stamps.append(stamp)
                rows[place] = row
        return rows

    def sort(self) -> RowArray:
        """Renumber the documents in the order of their stamps; return the new row of each, int64 [rows]."""
        order = sorted(range(len(self.ids)), key=lambda row: (self._stamps[row], self.ids[row]))
        self.ids, self._stamps = [self.ids[row] for row in order], [self._stamps[row] for row in order]
        self._row_of = {id_: row for row, id_ in enumerate(self.ids)}
        renumbered = np.empty(len(order), dtype=np.int64)
        renumbered[order] = np.arange(len(order))
        return renumbered
