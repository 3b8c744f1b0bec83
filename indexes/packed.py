"""Ids stored as the bytes of their file and offsets, in an eighth of the memory that strings would take.

The rows of an id are found through sorted 64-bit hashes, whose last bits are replaced by the row. Numpy hashes eight
bytes of all ids at a time, with a per-process salt, so that nobody can craft a file whose ids all collide. Since equal
hashes do not imply equal ids, the bytes are compared.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import secrets
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from indexes.arrays import distinct
from indexes.dtypes import AnyArray, Int64Array

WORD = 8  # bytes hashed at a time
BLOCK = 1 << 16  # ids decoded or hashed at a time
FEW = 32  # up to this many ids are found faster one by one than with numpy
SALT = np.uint64(secrets.randbits(64))
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # an odd multiplier from the golden ratio
HALF = np.uint64(32)
WHOLE = (1 << 64) - 1
# Bit masks of words that end after n bytes.
KEPT = np.array([(1 << 8 * n) - 1 for n in range(WORD + 1)], dtype=np.uint64)


class _Block:
    """Contiguous ids: `starts` (int64 [n + 1]) gives their offsets in the UTF-8 bytes `data`, uint8 [m].

    Each id but the last is followed by a separator byte, so it ends one byte before the next id's start.
    """

    def __init__(self, data: AnyArray, starts: Int64Array) -> None:
        self.data, self.starts = data, starts
        self._view = data.data

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> bytes:
        """Return the bytes of the id of a row."""
        return bytes(self._view[self.starts[row] : self.starts[row + 1] - 1])

    def bytes_of(self, rows: AnyArray) -> list[bytes]:
        """Return the bytes of the ids of `rows` (integers [n])."""
        return [bytes(part) for part in self._views(rows)]

    def texts_of(self, rows: AnyArray) -> list[str]:
        """Return the ids of `rows` (integers [n]) as strings."""
        return [str(part, "utf-8") for part in self._views(rows)]

    def _views(self, rows: AnyArray) -> list[memoryview]:
        view, begins, ends = self._view, self.starts[rows].tolist(), self.starts[rows + 1].tolist()
        return [view[begin : end - 1] for begin, end in zip(begins, ends, strict=True)]

    def decoded(self, low: int, high: int) -> list[str]:
        """Return the ids of the rows from `low` up to, but excluding, `high`."""
        if low >= high:
            return []
        return str(self._view[self.starts[low] : self.starts[high] - 1], "utf-8").split("\n")

    @functools.cached_property
    def hashes(self) -> AnyArray:
        """A hash of each id, uint64 [n], kept until `keys` are made or `PackedIds.forget` is called."""
        blocks = [
            _hashes(self.data, self.starts[low : low + BLOCK + 1]) for low in range(0, len(self), BLOCK)
        ]
        return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.uint64)

    @functools.cached_property
    def keys(self) -> AnyArray:
        """The hashes in ascending order, uint64 [n], with rows in place of their last bits (`_row_bits`).

        Sorting them takes a quarter of the time that it takes to sort rows by their hashes.
        """
        keys = (self.hashes & ~self._row_bits) | np.arange(len(self), dtype=np.uint64)
        self.__dict__.pop("hashes", None)
        keys.sort()
        return keys

    @property
    def _row_bits(self) -> np.uint64:
        return np.uint64((1 << len(self).bit_length()) - 1)

    def find(self, sought: AnyArray) -> tuple[Int64Array, Int64Array]:
        """Return pairs of a position in `sought` (hashes, uint64 [n]) and a row that may have it, int64 [matches].

        All rows with the hash are among them, and hardly any others.
        """
        keys, bits = self.keys, self._row_bits
        low = np.searchsorted(keys, sought & ~bits)
        counts = np.searchsorted(keys, sought | bits, "right") - low
        which = np.repeat(np.arange(len(sought)), counts)
        nth = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return which, (keys[low[which] + nth] & bits).astype(np.int64)

    def rows(self, data: bytes, sought: int) -> Iterator[int]:
        """Yield the rows whose id has these bytes; `sought` is their hash."""
        keys, bits = self.keys, int(self._row_bits)
        for place in range(int(keys.searchsorted(np.uint64(sought & ~bits))), len(keys)):
            if (key := int(keys[place])) > sought | bits:
                return
            if self[row := key & bits] == data:
                yield row


class PackedIds(Sequence[str]):
    """Strings in row order, read-only, in blocks; strings from several files are joined without copying."""

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._blocks = [block for block in blocks if len(block)]
        self._firsts = list(itertools.accumulate(map(len, self._blocks), initial=0))

    @classmethod
    def of_lines(cls, data: bytes) -> PackedIds:
        """Return the lines of UTF-8 bytes, between line feeds, none of them empty."""
        array = np.frombuffer(data, dtype=np.uint8)
        ends = np.flatnonzero(array == ord("\n"))
        return cls([_Block(array, np.concatenate(([0], ends + 1, [len(data) + 1])))])

    @classmethod
    def of(cls, ids: Sequence[str]) -> PackedIds:
        """Return any strings as packed ids, for look-ups; only valid ids can be read back as strings."""
        encoded = _encoded(ids)
        starts = np.cumsum([0, *(len(data) + 1 for data in encoded)])
        return cls([_Block(np.frombuffer(b"\n".join(encoded), dtype=np.uint8), starts)])

    @classmethod
    def joined(cls, parts: Sequence[PackedIds]) -> PackedIds:
        """Return the ids of all parts, one after the other."""
        return cls([block for part in parts for block in part._blocks])

    def all_filled(self) -> bool:
        """Return whether no id is empty."""
        return all((np.diff(block.starts) > 1).all() for block in self._blocks)

    def __len__(self) -> int:
        return self._firsts[-1]

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        """Return the id of a row, or the ids of a run of rows."""
        if isinstance(row, slice):
            low, high, step = row.indices(len(self))
            return self._decoded(low, high) if step == 1 else [self[n] for n in range(low, high, step)]
        return self._bytes(range(len(self))[row]).decode()

    def of_rows(self, rows: AnyArray) -> list[str]:
        """Return the ids of `rows`, int64 [n], each of which exists."""
        if len(self._blocks) == 1:
            return self._blocks[0].texts_of(rows)
        return [self._bytes(row).decode() for row in rows.tolist()]

    def _bytes_of(self, rows: AnyArray) -> list[bytes]:
        if len(self._blocks) == 1:
            return self._blocks[0].bytes_of(rows)
        return [self._bytes(row) for row in rows.tolist()]

    def _bytes(self, row: int) -> bytes:
        number = bisect.bisect_right(self._firsts, row) - 1
        return self._blocks[number][row - self._firsts[number]]

    def _decoded(self, low: int, high: int) -> list[str]:
        found: list[str] = []
        for first, block in zip(self._firsts, self._blocks, strict=False):
            found += block.decoded(max(low - first, 0), min(high - first, len(block)))
        return found

    def __iter__(self) -> Iterator[str]:
        for low in range(0, len(self), BLOCK):
            yield from self._decoded(low, min(low + BLOCK, len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment] # as a list

    @property
    def hashes(self) -> AnyArray:
        """A hash of each id, uint64 [n], kept until it is looked up or `forget` is called."""
        return np.concatenate([np.empty(0, dtype=np.uint64), *(block.hashes for block in self._blocks)])

    def forget(self) -> None:
        """Free the memory of the hashes; they are recomputed if needed."""
        for block in self._blocks:
            block.__dict__.pop("hashes", None)

    def find(self, ids: Sequence[str]) -> tuple[Int64Array, Int64Array]:
        """Return the positions in `ids` and the rows with the same id, both int64 [matches], in any order."""
        if len(ids) <= FEW:
            few = [(n, row) for n, id_ in enumerate(_encoded(ids)) for row in self._rows_of(id_)]
            both = np.array(few, dtype=np.int64).reshape(-1, 2)
            return both[:, 0], both[:, 1]
        sought = ids if isinstance(ids, PackedIds) else PackedIds.of(ids)
        hashes, positions, rows = sought.hashes, [], []
        for first, block in zip(self._firsts, self._blocks, strict=False):
            which, matches = block.find(hashes)
            pairs = zip(sought._bytes_of(which), block.bytes_of(matches), strict=True)
            equal = np.fromiter((a == b for a, b in pairs), dtype=bool, count=len(which))
            positions.append(which[equal])
            rows.append(matches[equal] + first)
        none = np.empty(0, dtype=np.int64)
        return np.concatenate([none, *positions]), np.concatenate([none, *rows])

    def rows(self, id_: str) -> list[int]:
        """Return the rows with an id, ascending."""
        return sorted(self.find([id_])[1].tolist())

    def _rows_of(self, data: bytes) -> list[int]:
        sought = _hash_of(data)
        blocks = zip(self._firsts, self._blocks, strict=False)
        return [first + row for first, block in blocks for row in block.rows(data, sought)]


class GrownIds(Sequence[str]):
    """Packed ids, and ids that were added after them."""

    def __init__(self, packed: PackedIds, added: list[str]) -> None:
        self._packed, self._added = packed, added

    def __len__(self) -> int:
        return len(self._packed) + len(self._added)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        """Return the id of a row, or the ids of several rows."""
        if isinstance(row, slice):
            return [self[n] for n in range(*row.indices(len(self)))]
        number, packed = range(len(self))[row], len(self._packed)
        return self._packed[number] if number < packed else self._added[number - packed]

    def __iter__(self) -> Iterator[str]:
        yield from self._packed
        yield from self._added


def repeated(parts: Sequence[Sequence[str]], live: Sequence[AnyArray | None]) -> list[str]:
    """Return the distinct ids that occur in more than one of the rows marked by `live` (bool [rows]; None: all)."""
    packed = [ids if isinstance(ids, PackedIds) else PackedIds.of(ids) for ids in parts]
    hashes = [
        ids.hashes if mask is None or mask.all() else ids.hashes[mask]
        for ids, mask in zip(packed, live, strict=True)
    ]
    ordered = np.concatenate(hashes)
    ordered.sort()
    doubtful = distinct(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(doubtful):
        return []
    counts: dict[str, int] = {}
    for ids, mask in zip(packed, live, strict=True):
        near = np.isin(ids.hashes, doubtful)
        for row in np.flatnonzero(near if mask is None else near & mask).tolist():
            counts[ids[row]] = counts.get(ids[row], 0) + 1
    return [id_ for id_, count in counts.items() if count > 1]


def _hashes(data: AnyArray, starts: Int64Array) -> AnyArray:
    first = int(starts[0])
    padded = np.zeros(int(starts[-1]) - first + WORD, dtype=np.uint8)
    padded[: len(padded) - WORD - 1] = data[first : int(starts[-1]) - 1]
    # words of eight bytes, one starting at each byte
    words = np.ndarray(len(padded) - WORD + 1, "<u8", padded, strides=(1,))
    at, lengths = starts[:-1] - first, np.diff(starts) - 1
    found = SALT ^ lengths.astype(np.uint64) * FACTOR
    rows: AnyArray | slice = slice(None)  # a slice if no id has been removed: a view is cheap
    for begin in range(0, int(lengths.max(initial=0)), WORD):
        if (lengths[rows] <= begin).any():
            rows = np.flatnonzero(lengths > begin)
        word = words[at[rows] + begin] & KEPT[np.minimum(lengths[rows] - begin, WORD)]
        mixed = (found[rows] ^ word) * FACTOR
        found[rows] = mixed ^ mixed >> HALF
    return found


def _encoded(ids: Sequence[str]) -> list[bytes]:
    if isinstance(ids, PackedIds):
        return [ids._bytes(row) for row in range(len(ids))]
    return [id_.encode("utf-8", "surrogatepass") for id_ in ids]


def _hash_of(data: bytes) -> int:
    found = int(SALT) ^ len(data) * int(FACTOR) & WHOLE
    for begin in range(0, len(data), WORD):
        mixed = (found ^ int.from_bytes(data[begin : begin + WORD], "little")) * int(FACTOR) & WHOLE
        found = mixed ^ mixed >> 32
    return found
