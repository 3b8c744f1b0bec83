"""Row numbers over documents that only a cluster knows: those that one search met, or all of them, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from indexes.interface import IndexesError, Metadata, RowArray
from indexes.rows import Rows

FEW = 10_000  # so many documents are never more than memory holds
MOST = 1_000_000  # documents whose ids are read at once
OF_ALL = frozenset(vars(Rows()))  # what the base class keeps of all rows


class Seen(Rows):
    """Numbers for the documents that a search has met."""

    def __init__(self, count: Callable[[], int]) -> None:
        """`count` returns the number of documents of the index."""
        super().__init__()
        self.ids: list[str] = []
        self._count = count
        self._stamps: list[int] = []

    def at_most(self, k: int) -> int:
        """Return k, or 1 or the number of the index's documents where that is less."""
        return k if k <= FEW else min(k, max(1, self._count()))

    def find(self, ids: Sequence[str]) -> RowArray:
        """Return the rows of documents, int64 [n], whether they have been met or not."""
        return self.number(ids, [0] * len(ids))

    def locate(self, ids: Sequence[str]) -> RowArray:
        """Return the rows of documents, int64 [n], which an answer has named."""
        return self.find(ids)

    def number(self, ids: Sequence[str], stamps: Sequence[int]) -> RowArray:
        """Return the rows of documents, int64 [n]; those that are new get the next ones."""
        lookup = self._lookup()
        rows = np.empty(len(ids), dtype=np.int64)
        for place, (id_, stamp) in enumerate(zip(ids, stamps, strict=True)):
            row = lookup.setdefault(id_, len(self.ids))
            if row == len(self.ids):
                self.ids.append(id_)
                self._stamps.append(stamp)
            rows[place] = row
        return rows

    def sort(self) -> RowArray:
        """Number the documents again, in the order of their stamps; return the new row of each, int64 [rows]."""
        order = sorted(range(len(self.ids)), key=lambda row: (self._stamps[row], self.ids[row]))
        self.ids, self._stamps = [self.ids[row] for row in order], [self._stamps[row] for row in order]
        self._row_of = {id_: row for row, id_ in enumerate(self.ids)}
        renumbered = np.empty(len(order), dtype=np.int64)
        renumbered[order] = np.arange(len(order))
        return renumbered


class RemoteRows(Rows):
    """The documents of an index on a cluster in the order of their stamps.

    Their number, and whether an id is among them, the server says; all else reads the ids of all documents, once:
    documents that are written later have no row. Raises IndexesError where they are more than MOST.
    """

    def __init__(
        self,
        count: Callable[[], int],
        has: Callable[[str], bool],
        fields: Callable[[], tuple[str, ...]],
        read: Callable[[], tuple[list[str], Callable[[], Iterator[Metadata]]]],
        name: str,
    ) -> None:
        """`read` returns all ids in order, and what yields the metadata of each; `name` is shown in errors."""
        self._count, self._has, self._named_fields, self._read = count, has, fields, read
        self._name = name

    def __len__(self) -> int:
        return self._count()

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and bool(id_) and self._has(id_)

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields by which documents can be filtered, sorted."""
        return self._named_fields()

    @property
    def is_read(self) -> bool:
        """Whether all ids have been read."""
        return "_row_of" in vars(self)

    def __getattr__(self, name: str) -> Any:
        # What the base class keeps of all rows is missing until it is needed.
        if name not in OF_ALL or self.is_read:
            raise AttributeError(name)
        self._read_all()
        return getattr(self, name)

    def _read_all(self) -> None:
        count = self._count()
        if count > MOST:
            raise IndexesError(
                f"{self._name} has {count:,} documents, and this would read the ids of all into memory, for which "
                f"{MOST:,} is the limit: narrow it down to an index of fewer, or use `linker search`, which reads none"
            )
        ids, metadata = self._read()
        whole = Rows()
        whole.restore(ids, np.empty(0, dtype=np.int64), metadata())
        vars(self).update(vars(whole))
