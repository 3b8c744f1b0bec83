"""Byte fields inside one buffer, handled eight bytes at a time, so that ten million ids need no Python string.

A field is a start and a length. Fields hold no NUL byte, so zero-padded words compare like C strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from indexes.dtypes import BoolArray, Int64Array

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Index = Int64Array | BoolArray | slice

PAD = 16  # bytes either side of the text, so that a word may be loaded across its edge
_WORD = np.dtype("<u8")
_FIRST = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)  # keeps the first k bytes
_STEP = 0xD1342543DE82EF95  # odd, so that its powers are too


@dataclass(frozen=True, slots=True)
class Fields:
    """`start` and `length`, int64 [n], of n fields in `buffer`, uint8 with `PAD` bytes either side."""

    buffer: Bytes
    start: Int64Array
    length: Int64Array

    @classmethod
    def of(cls, texts: Sequence[str]) -> Fields:
        """Return strings as fields; the caller has checked that none holds a NUL."""
        joined = ("\0".join(texts) + "\0").encode("utf-8", "surrogateescape") if texts else b""
        buffer = padded(joined)
        end = np.flatnonzero(buffer[PAD : PAD + len(joined)] == 0) + PAD
        start = np.concatenate(([PAD], end[:-1] + 1))[: len(end)]
        return cls(buffer, start, end - start)

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: Index) -> Fields:
        return Fields(self.buffer, self.start[rows], self.length[rows])

    def sixteen(self) -> tuple[Words, Words]:
        """Return the first 16 bytes of each as two words, with whatever follows a shorter field."""
        pairs = _at_any_byte(self.buffer, "V16")[self.start].view(_WORD)  # as fast as loading 8 bytes
        return pairs[::2], pairs[1::2]

    def words(self) -> Iterator[tuple[Index, Words]]:
        """Yield for each word position rows, among them all that reach it, and their zero-padded words."""
        rows: Index = slice(None)
        here = self
        while len(here):
            if here.length.max() <= 8:
                yield rows, _first(_at_any_byte(self.buffer, "<u8")[here.start], here.length)
                return
            low, high = here.sixteen()
            yield rows, _first(low, here.length)
            yield rows, _first(high, here.length - 8)
            at = np.flatnonzero(here.length > 16)
            rows = at if isinstance(rows, slice) else rows[at]
            here = Fields(self.buffer, here.start[at] + 16, here.length[at] - 16)

    def hashes(self) -> Words:
        """Return a 64-bit hash of each field; equal hashes still have to be compared."""
        result = np.zeros(len(self), np.uint64)
        factor = _STEP
        for rows, word in self.words():
            result[rows] += word * np.uint64(factor)  # a word of padding adds nothing
            factor = factor * _STEP % 2**64
        return result

    def equal(self, other: Fields) -> BoolArray:
        """Compare row by row, exactly."""
        same: BoolArray = self.length == other.length
        rows = np.flatnonzero(same)
        for (at, mine), (_, theirs) in zip(self[rows].words(), other[rows].words(), strict=False):
            same[rows[at]] &= mine == theirs
        return same

    def changes(self) -> BoolArray:
        """Mark the rows whose field differs from the row before; row 0 is marked."""
        differs = np.ones(len(self), np.bool_)
        differs[1:] = self.length[1:] != self.length[:-1]
        for rows, word in self.words():
            whole = word
            if not isinstance(rows, slice):
                whole = np.zeros(len(self), np.uint64)
                whole[rows] = word
            differs[1:] |= whole[1:] != whole[:-1]
        return differs

    def sort_keys(self) -> list[Words]:
        """Return keys for `np.lexsort`, least important first, that sort in byte order."""
        keys = []
        for rows, word in self.words():
            key = np.zeros(len(self), np.uint64)
            key[rows] = word.byteswap()
            keys.append(key)
        return keys[::-1]

    def array(self) -> npt.NDArray[np.bytes_]:
        """Return the fields as a numpy bytes array, which sorts in byte order."""
        width = max(1, -(-int(self.length.max(initial=1)) // 8))
        matrix = np.zeros((len(self), width), _WORD)
        for column, (rows, word) in enumerate(self.words()):
            matrix[rows, column] = word
        return matrix.view(f"S{8 * width}")[:, 0]

    def texts(self) -> list[str]:
        """Return the fields as strings."""
        text, ends = self.buffer.data, (self.start + self.length).tolist()
        return [
            str(text[a:b], "utf-8", "surrogateescape") for a, b in zip(self.start.tolist(), ends, strict=True)
        ]


def padded(text: bytes) -> Bytes:
    """Return text as an array with `PAD` zero bytes either side."""
    buffer = np.zeros(len(text) + 2 * PAD, np.uint8)
    buffer[PAD : PAD + len(text)] = np.frombuffer(text, np.uint8)
    return buffer


def _at_any_byte(buffer: Bytes, item: str) -> npt.NDArray[Any]:
    """View every byte's neighbourhood as an item: element i starts at byte i."""
    kind = np.dtype(item)
    return np.ndarray((len(buffer) - kind.itemsize + 1,), kind, buffer, strides=(1,))


def _first(word: Words, length: Int64Array) -> Words:
    """Keep the first `length` bytes of a word: none below 1, all from 8."""
    return word if length.min() >= 8 else word & _FIRST.take(length, mode="clip")
