"""Byte fields in one buffer, processed eight bytes at a time, without making Python strings of ten million ids.

A field is a start and a length. Fields contain no NUL byte, so that zero-padded words compare like C strings.
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

PAD = 16  # zero bytes on either side of the text, so that words can be loaded across its edges
_WORD = np.dtype("<u8")
_FIRST = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)  # masks that keep the first k bytes
_STEP = 0xD1342543DE82EF95  # odd, so that its powers are too


@dataclass(frozen=True, slots=True)
class Fields:
    """n byte fields: `start` and `length`, int64 [n], in `buffer`, uint8 with `PAD` zero bytes on either side."""

    buffer: Bytes
    start: Int64Array
    length: Int64Array

    @classmethod
    def of(cls, texts: Sequence[str]) -> Fields:
        """Return strings as fields; the caller makes sure that none contains a NUL."""
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
        """Return the first 16 bytes of each field as two words, uint64 [n] each; bytes past its end are arbitrary."""
        pairs = _at_any_byte(self.buffer, "V16")[self.start].view(_WORD)  # as fast as loading 8 bytes
        return pairs[::2], pairs[1::2]

    def words(self) -> Iterator[tuple[Index, Words]]:
        """Yield, for each word position, the rows [r] of the fields that may reach it, and their zero-padded words."""
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
        """Return a hash of each field, uint64 [n]; different fields may share one."""
        result = np.zeros(len(self), np.uint64)
        factor = _STEP
        for rows, word in self.words():
            result[rows] += word * np.uint64(factor)  # padding adds nothing
            factor = factor * _STEP % 2**64
        return result

    def equal(self, other: Fields) -> BoolArray:
        """Return whether each field equals the one in the same row of `other`, bool [n]."""
        same: BoolArray = self.length == other.length
        rows = np.flatnonzero(same)
        for (at, left), (_, right) in zip(self[rows].words(), other[rows].words(), strict=False):
            same[rows[at]] &= left == right
        return same

    def changes(self) -> BoolArray:
        """Return whether each field differs from the one before, bool [n]; true in row 0."""
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
        """Return keys for `np.lexsort`, uint64 [n] each, least significant first, that sort in byte order."""
        keys = []
        for rows, word in self.words():
            key = np.zeros(len(self), np.uint64)
            key[rows] = word.byteswap()
            keys.append(key)
        return keys[::-1]

    def array(self) -> npt.NDArray[np.bytes_]:
        """Return the fields as a numpy array of bytes [n], which sorts in byte order."""
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
    """Return `text` as uint8 [len(text) + 2 · PAD], with `PAD` zero bytes on either side."""
    buffer = np.zeros(len(text) + 2 * PAD, np.uint8)
    buffer[PAD : PAD + len(text)] = np.frombuffer(text, np.uint8)
    return buffer


def _at_any_byte(buffer: Bytes, item: str) -> npt.NDArray[Any]:
    """Return a view of the buffer as overlapping items: element i starts at byte i."""
    kind = np.dtype(item)
    return np.ndarray((len(buffer) - kind.itemsize + 1,), kind, buffer, strides=(1,))


def _first(word: Words, length: Int64Array) -> Words:
    """Zero all but the first `length` bytes of each word; a negative length keeps none."""
    return word if length.min() >= 8 else word & _FIRST.take(length, mode="clip")
