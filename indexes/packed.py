"""Ids as the bytes of their file and where each begins: an eighth of the memory that as many strings take.

Which rows have an id is found by 64-bit hashes in order. Numpy hashes eight bytes of all ids at a time, with a salt of
the process, so that no file can be made whose ids all collide. Equal hashes are not taken for equal ids: the bytes are
compared.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from indexes.dtypes import AnyArray, Int64Array

WORD = 8  # bytes hashed at a time
BLOCK = 1 << 16  # ids decoded or hashed at a time
SALT = np.uint64(secrets.randbits(64))
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, from the golden ratio
HALF = np.uint64(32)
# A word that ends after n bytes keeps these bits.
KEPT = np.array([(1 << 8 * n) - 1 for n in range(WORD + 1)], dtype=np.uint64)


class PackedIds(Sequence[str]):
    """Strings in row order, for reading. `starts` (int64 [n + 1]): where each begins in the UTF-8 bytes `data` [m].

    Each but the last is followed by one byte that belongs to none, so that it ends at the next one's start minus one.
    """

    def __init__(self, data: AnyArray, starts: Int64Array) -> None:
        self._data, self._starts = data, starts

    @classmethod
    def of_lines(cls, data: bytes) -> PackedIds:
        """Return the lines of UTF-8 bytes, between line feeds, none of them empty."""
        array = np.frombuffer(data, dtype=np.uint8)
        ends = np.flatnonzero(array == ord("\n"))
        return cls(array, np.concatenate(([0], ends + 1, [len(data) + 1])))

    @classmethod
    def of(cls, ids: Sequence[str]) -> PackedIds:
        """Return ids, none of them empty or with a line feed."""
        return cls.of_lines("\n".join(ids).encode()) if ids else cls.joined([])

    @classmethod
    def joined(cls, parts: Sequence[PackedIds]) -> PackedIds:
        """Return the ids of all parts, one after the other."""
        firsts = np.cumsum([0, *(int(part._starts[-1]) for part in parts)])
        data = np.full(firsts[-1], ord("\n"), dtype=np.uint8)
        starts = [part._starts[:-1] + first for part, first in zip(parts, firsts, strict=False)]
        for part, first in zip(parts, firsts.tolist(), strict=False):
            data[first : first + len(part._data)] = part._data
        return cls(data[:-1], np.concatenate([*starts, firsts[-1:]]))

    def all_filled(self) -> bool:
        """Return whether no id is empty."""
        return bool((np.diff(self._starts) > 1).all())

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        """Return the id of a row, or those of a run of rows."""
        if isinstance(row, slice):
            low, high, step = row.indices(len(self))
            return self._decoded(low, high) if step == 1 else [self[n] for n in range(low, high, step)]
        number = range(len(self))[row]
        return self._bytes(number).decode()

    def _bytes(self, row: int) -> bytes:
        start, end = self._starts[row : row + 2].tolist()
        return bytes(self._data[start : end - 1])

    def _decoded(self, low: int, high: int) -> list[str]:
        if low >= high:
            return []
        return bytes(self._data[self._starts[low] : self._starts[high] - 1]).decode().split("\n")

    def __iter__(self) -> Iterator[str]:
        for low in range(0, len(self), BLOCK):
            yield from self._decoded(low, min(low + BLOCK, len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment] # as a list

    @functools.cached_property
    def hashes(self) -> AnyArray:
        """A hash of each id, uint64 [n], kept until `_order` or `forget` needs it no more."""
        blocks = [
            _hashes(self._data, self._starts[low : low + BLOCK + 1]) for low in range(0, len(self), BLOCK)
        ]
        return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.uint64)

    def forget(self) -> None:
        """Give the memory of the hashes back; they are computed again where they are needed."""
        self.__dict__.pop("hashes", None)

    @functools.cached_property
    def _order(self) -> tuple[AnyArray, AnyArray]:
        """The hashes in ascending order, and whose they are."""
        hashes = self.hashes
        order = np.argsort(hashes)
        self.forget()
        return hashes[order], order.astype(np.uint32)

    def rows(self, id_: str) -> list[int]:
        """Return the rows that have an id, ascending."""
        wanted = id_.encode("utf-8", "surrogatepass")
        if not wanted:
            return []
        sought = _hashes(np.frombuffer(wanted, dtype=np.uint8), np.array([0, len(wanted) + 1]))
        hashes, order = self._order
        low, high = (int(np.searchsorted(hashes, sought, side)[0]) for side in ("left", "right"))
        return [row for row in sorted(order[low:high].tolist()) if self._bytes(row) == wanted]


def repeated(parts: Sequence[Sequence[str]], live: Sequence[AnyArray | None]) -> list[str]:
    """Return the ids that more than one row has, each once, of rows that `live` (bool [rows]; None: all) marks."""
    packed = [ids if isinstance(ids, PackedIds) else PackedIds.of(ids) for ids in parts]
    hashes = [
        ids.hashes if mask is None else ids.hashes[mask] for ids, mask in zip(packed, live, strict=True)
    ]
    ordered = np.sort(np.concatenate(hashes))
    doubtful = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(doubtful):
        return []
    counts: dict[str, int] = {}
    for ids, mask in zip(packed, live, strict=True):
        near = np.isin(ids.hashes, doubtful)
        for row in np.flatnonzero(near if mask is None else near & mask).tolist():
            counts[ids[row]] = counts.get(ids[row], 0) + 1
    return [id_ for id_, count in counts.items() if count > 1]


def _hashes(data: AnyArray, starts: Int64Array) -> AnyArray:
    """Return a hash of each string of `PackedIds(data, starts)`, uint64 [n]."""
    first = int(starts[0])
    padded = np.zeros(int(starts[-1]) - first + WORD, dtype=np.uint8)
    padded[: len(padded) - WORD - 1] = data[first : int(starts[-1]) - 1]
    words = np.ndarray(len(padded) - WORD + 1, "<u8", padded, strides=(1,))  # one from each byte on
    at, lengths = starts[:-1] - first, np.diff(starts) - 1
    found = SALT ^ lengths.astype(np.uint64) * FACTOR
    rows: AnyArray | slice = slice(None)  # all, as long as none has ended: taking a view is cheap
    for begin in range(0, int(lengths.max(initial=0)), WORD):
        if (lengths[rows] <= begin).any():
            rows = np.flatnonzero(lengths > begin)
        word = words[at[rows] + begin] & KEPT[np.minimum(lengths[rows] - begin, WORD)]
        mixed = (found[rows] ^ word) * FACTOR
        found[rows] = mixed ^ mixed >> HALF
    return found
