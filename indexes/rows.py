"""Row numbers of string ids: the row of an id, the live rows, and metadata columns for filters."""

import itertools
import threading
from collections.abc import Iterable, Sequence, Sized

import numpy as np

from indexes.arrays import distinct
from indexes.comparing import Axis
from indexes.filters import misfit_text
from indexes.interface import (
    Condition,
    DuplicateIdError,
    Filter,
    Hits,
    IndexesError,
    Mask,
    Metadata,
    RowArray,
    RowFilter,
    ScoreArray,
    UnknownIdError,
    check_ids,
    filter_values,
)
from indexes.packed import GrownIds, PackedIds

NAMED = 5  # ids in an error message
MASKS_KEPT = 32  # number of cached masks, each of which takes one byte per row


def already_present(ids: Sequence[str]) -> DuplicateIdError:
    """Return the error for ids that cannot be added: they are present already, or more than once in the batch."""
    return DuplicateIdError(
        f"already present or given twice: {name_some(ids)}; remove them first, or replace them"
    )


def check_lengths(ids: Sized, texts: Sized, metadata: Sized | None) -> None:
    """Raise IndexesError if the number of texts, or of metadata records if there are any, differs from that of ids."""
    records = len(ids if metadata is None else metadata)
    if not len(ids) == len(texts) == records:
        raise IndexesError(
            f"expected as many texts and metadata records as ids: {len(texts)}, {records} and {len(ids)}"
        )


def name_some(ids: Sequence[str]) -> str:
    """Return ids as text for an error message: the first NAMED, then a count of the others."""
    shown = ", ".join(repr(i) for i in ids[:NAMED])
    return shown + (f" and {len(ids) - NAMED} more" if len(ids) > NAMED else "")


class Rows:
    """Ids in order of arrival. A removed id keeps its row, which is dead, and may be added again under a new row."""

    def __init__(self) -> None:
        self._added: list[str] = []
        self.ids: Sequence[str] = self._added
        self._stored = PackedIds([])  # the restored ids, if they are packed
        self._row_of: dict[str, int] | None = {}  # live rows of all other ids
        self._dead: RowArray = np.empty(0, dtype=np.int64)  # ascending
        self._columns: dict[str, dict[str, list[int]]] = {}
        self._axes: dict[str, Axis] = {}
        self._unread: Iterable[Metadata] | None = None
        self._restored = 0
        self._masks: dict[Filter | None, Mask] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.ids) - len(self._dead)

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and bool(self._rows_of([id_])[0] >= 0)

    def at_most(self, k: int) -> int:
        """Return k, or the number of rows (at least 1) if that is smaller, since no result is longer."""
        return min(k, max(1, len(self.ids)))

    def _lookup(self) -> dict[str, int]:
        if self._row_of is None:
            dead = set(self._dead.tolist())
            self._row_of = {id_: row for row, id_ in enumerate(self.ids) if row not in dead}
        return self._row_of

    def _rows_of(self, ids: Sequence[str]) -> RowArray:
        """Return the live rows (int64 [n]) of n ids; −1 if there is none."""
        lookup = self._lookup()
        rows = np.fromiter(map(lookup.get, ids, itertools.repeat(-1)), dtype=np.int64, count=len(ids))
        if len(self._stored):
            places, stored = self._stored.find(ids)
            live = self._alive(stored)
            rows[places[live]] = stored[live]
        return rows

    def _alive(self, rows: RowArray) -> Mask:
        if not len(self._dead):
            return np.ones(len(rows), dtype=bool)
        next_dead = np.minimum(np.searchsorted(self._dead, rows), len(self._dead) - 1)
        return np.asarray(self._dead[next_dead] != rows)

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return those of `ids` that have a live row."""
        rows = self._rows_of(ids).tolist()
        return {id_ for id_, row in zip(ids, rows, strict=True) if row >= 0}

    def check_new(self, ids: Sequence[str]) -> None:
        """Raise BadIdError or DuplicateIdError unless every id can be added."""
        check_ids(ids)
        rows = self._rows_of(ids)
        if len(set(ids)) == len(ids) and (rows < 0).all():
            return
        present = (rows >= 0).tolist()
        seen: set[str] = set()
        repeated = []
        for id_, is_present in zip(ids, present, strict=True):
            if is_present or id_ in seen:
                repeated.append(id_)
            seen.add(id_)
        if repeated:
            raise already_present(repeated)

    def append(self, ids: Sequence[str], metadata: Sequence[Metadata] | None = None) -> int:
        """Add ids, all or nothing, and return the row of the first. Raises BadIdError, DuplicateIdError, ValueError."""
        self.check_new(ids)
        if metadata is not None and len(metadata) != len(ids):
            raise ValueError(f"expected metadata for each of {len(ids)} ids, got {len(metadata)} records")
        # This may fail, so it comes before any change.
        columns = [_terms(values) for values in metadata or ()]
        first = len(self.ids)
        self._lookup().update(zip(ids, range(first, first + len(ids)), strict=True))
        if self.ids is self._stored:
            self.ids = GrownIds(self._stored, self._added)
        elif self.ids is not self._added and not isinstance(self.ids, GrownIds):
            self._added = self.ids = list(self.ids)
        self._added.extend(ids)
        self._add_columns(columns, first)
        self._masks.clear()
        self._axes.clear()
        return first

    def _add_columns(self, columns: Iterable[Sequence[tuple[str, str]]], first: int) -> int:
        """Record the fields and values by which each row can be filtered; return the row after the last row."""
        row = first - 1
        for row, terms in enumerate(columns, start=first):
            for name, text in terms:
                self._columns.setdefault(name, {}).setdefault(text, []).append(row)
        return row + 1

    def restore(self, ids: Sequence[str], dead: RowArray, metadata: Iterable[Metadata] | None = None) -> None:
        """Fill empty Rows from storage: trusted ids in row order, the `dead` rows (int64 [n]), metadata by row.

        `metadata` is read when a filter first needs it, so a generator that reads a file costs nothing until then.
        """
        self._added, self._row_of = [], {}
        if isinstance(ids, PackedIds):
            self._stored = self.ids = ids
        else:
            self.ids, self._row_of = ids, None
        self._dead = dead
        self._unread, self._restored = metadata, len(ids)
        self._masks.clear()

    def _read_metadata(self) -> None:
        """Read the metadata that `restore` left for later. Raises IndexesError if a row has none."""
        if self._unread is None:
            return
        # If an earlier attempt failed midway, too few rows remain to be read, so no filter uses half the metadata.
        rows_read = self._add_columns(map(_terms, self._unread), 0)
        if rows_read != self._restored:
            raise IndexesError(
                f"expected metadata of {self._restored} documents, got {rows_read}: rebuild the index"
            )
        self._unread = None

    def locate(self, ids: Sequence[str]) -> RowArray:
        """Return the live rows (int64 [n]) of n ids. Raises UnknownIdError naming the ids without a live row."""
        rows = self._rows_of(ids)
        if missing := [id_ for id_, row in zip(ids, rows.tolist(), strict=True) if row < 0]:
            raise UnknownIdError(f"not in the index: {name_some(missing)}")
        return rows

    def find(self, ids: Sequence[str]) -> RowArray:
        """Return the live rows (int64 [n]) of n ids; −1 if there is none."""
        return self._rows_of(ids)

    def remove(self, ids: Sequence[str]) -> RowArray:
        """Mark the rows of ids as dead, all or nothing; return them, int64 [n], ascending. Raises UnknownIdError."""
        rows = distinct(self.locate(ids))
        self._dead = np.insert(self._dead, np.searchsorted(self._dead, rows), rows)
        for id_ in ids:
            self._lookup().pop(id_, None)
        self._masks.clear()
        return rows

    @property
    def dead(self) -> RowArray:
        """Rows of removed documents (int64 [n]), ascending."""
        return self._dead

    def mask(self, where: Filter | None = None) -> Mask | None:
        """Return which rows may be returned (bool [rows], read-only), or None if all may be.

        Several threads may call it at once. Raises IndexesError if the stored metadata is incomplete.
        """
        if where is None and not len(self._dead):
            return None
        if isinstance(where, RowFilter):  # such a filter is made for one query, so its mask is not cached
            conditions = self.mask(Filter(where.conditions) if where.conditions else None)
            return where.rows if conditions is None else conditions & where.rows
        with self._lock:
            if where not in self._masks:
                if len(self._masks) >= MASKS_KEPT:
                    self._masks.clear()
                self._masks[where] = self._allowed(where)
            return self._masks[where]

    def _allowed(self, where: Filter | None) -> Mask:
        allowed = np.ones(len(self.ids), dtype=bool)
        if where is not None:
            self._read_metadata()
            for condition in where.all:
                allowed &= self._satisfying(condition)
        allowed[self._dead] = False
        allowed.flags.writeable = False
        return allowed

    def _satisfying(self, condition: Condition) -> Mask:
        column = self._columns.get(condition.field, {})
        hit = np.zeros(len(self.ids), dtype=bool)
        if condition.is_range:
            hit[self._axis(condition.field).rows(condition.sign, condition.values[0])] = True
            return hit
        for value in condition.values:
            hit[column.get(value, [])] = True
        return hit if condition.sign == "=" else ~hit

    def _axis(self, field: str) -> Axis:
        if field not in self._axes:
            self._axes[field] = Axis(self._columns.get(field, {}).items())
        return self._axes[field]

    def misfits(self, where: Filter) -> tuple[str, ...]:
        """Return a remark for each range that cannot be compared with some values. Raises BadFilterError."""
        ranges = [condition for condition in where.all if condition.is_range]
        if not ranges:
            return ()
        with self._lock:
            self._read_metadata()
            found = [
                (condition, self._axis(condition.field).misfit(condition.values[0])) for condition in ranges
            ]
        return tuple(misfit_text(condition, misfit) for condition, misfit in found if misfit)

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields for filters, sorted, removed documents' included. Raises IndexesError."""
        with self._lock:
            self._read_metadata()
        return tuple(sorted(self._columns))

    def hits(self, rows: RowArray, scores: ScoreArray) -> list[Hits]:
        """Return one Hits per query, from rows and scores [n, k] that are padded with row −1."""
        found, ids = rows[rows >= 0], self.ids
        names = ids.of_rows(found) if isinstance(ids, PackedIds) else [ids[r] for r in found.tolist()]
        counts = [len(row) - row.count(-1) for row in rows.tolist()]
        ends = itertools.accumulate(counts)
        return [
            Hits(tuple(names[end - n : end]), score if n == len(score) else score[:n])
            for score, n, end in zip(scores, counts, ends, strict=True)
        ]


def _terms(metadata: Metadata) -> list[tuple[str, str]]:
    return [(name, text) for name, value in metadata.items() for text in filter_values(value)]
