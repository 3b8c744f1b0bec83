"""Byte fields inside one buffer, handled eight bytes at a time, so that ten million ids need no Python string.

A field is a start and a length. Fields hold no NUL byte, so zero-padded words compare like C strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Index = Ints | Flags | slice

PAD = 16  # bytes either side of the text, so that a word may be loaded across its edge
_WORD = np.dtype("<u8")
_FIRST = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)  # keeps the first k bytes
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio
_STEP = 0xD1342543DE82EF95  # odd, so that its powers are too
_TENS = 10.0 ** np.arange(17)  # each exact in a double


@dataclass(frozen=True, slots=True)
class Fields:
    """`start` and `length`, int64 [n], of n fields in `buffer`, uint8 with `PAD` bytes either side."""

    buffer: Bytes
    start: Ints
    length: Ints

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

    def words(self) -> Iterator[tuple[Index, Words]]:
        """Yield for each word position rows, among them all that reach it, and their zero-padded words."""
        view = _words_at_any_byte(self.buffer)
        rows: Index = slice(None)
        start, length = self.start, self.length
        while len(start):
            word = view[start]
            if length.min() < 8:
                word &= _FIRST[np.minimum(np.maximum(length, 0), 8)]
            yield rows, word
            longer = length > 8
            if 4 * np.count_nonzero(longer) > 3 * len(longer):  # cheaper to go on with all
                start, length = np.where(longer, start + 8, start), length - 8
            else:
                at = np.flatnonzero(longer)
                rows = at if isinstance(rows, slice) else rows[at]
                start, length = start[at] + 8, length[at] - 8

    def hashes(self) -> Words:
        """Return a 64-bit hash of each field; equal hashes still have to be compared."""
        result = np.zeros(len(self), np.uint64)
        factor = _STEP
        for rows, word in self.words():
            mixed = word * _MIX
            mixed ^= mixed >> np.uint64(32)
            mixed *= np.uint64(factor)
            result[rows] += mixed  # a word of padding adds nothing
            factor = factor * _STEP % 2**64
        return result

    def equal(self, other: Fields) -> Flags:
        """Compare row by row, exactly."""
        same: Flags = self.length == other.length
        rows = np.flatnonzero(same)
        for (at, mine), (_, theirs) in zip(self[rows].words(), other[rows].words(), strict=False):
            same[rows[at]] &= mine == theirs
        return same

    def changes(self) -> Flags:
        """Mark the rows whose field differs from the row before; row 0 is marked."""
        differs = np.ones(len(self), np.bool_)
        differs[1:] = self.length[1:] != self.length[:-1]
        for rows, word in self.words():
            whole = word if isinstance(rows, slice) else np.zeros(len(self), np.uint64)
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

    def numbers(self) -> Floats:
        """Return the fields as doubles, rounded as C's `strtod` rounds; what is no number becomes NaN."""
        values, done = _short_decimals(self)
        rest = np.flatnonzero(~done)
        if len(rest):
            values[rest] = _long_numbers(self[rest].array())
        return values


def padded(text: bytes) -> Bytes:
    """Return text as an array with `PAD` zero bytes either side."""
    buffer = np.zeros(len(text) + 2 * PAD, np.uint8)
    buffer[PAD : PAD + len(text)] = np.frombuffer(text, np.uint8)
    return buffer


def _words_at_any_byte(buffer: Bytes) -> Words:
    return np.ndarray((len(buffer) - 7,), _WORD, buffer, strides=(1,))


def _long_numbers(texts: npt.NDArray[np.bytes_]) -> list[float]:
    """Read numbers one by one; Python alone would accept 1_000."""
    try:
        if b"_" not in texts.tobytes():
            return list(map(float, texts.tolist()))
    except ValueError:
        pass
    return [_number(text) for text in texts.tolist()]


def _number(text: bytes) -> float:
    try:
        return float("x" if b"_" in text else text)
    except ValueError:
        return float("nan")


def _short_decimals(fields: Fields) -> tuple[Floats, Flags]:
    """Read fields of at most 16 bytes that are plain decimals, `-12.34`; say which rows were read.

    At most 15 digits and a power of ten up to 10^15 are exact doubles, so one division rounds correctly
    (Clinger, "How to read floating point numbers accurately", PLDI 1990).
    """
    negative = fields.buffer[fields.start] == ord("-")
    length = fields.length - negative
    view = _words_at_any_byte(fields.buffer)
    end = fields.start + fields.length
    clipped = np.minimum(length, 16)
    zeros = np.uint64(0x3030303030303030)  # digits become 0…9, a point becomes 0x1e
    tail = (view[end - 8] ^ zeros) & ~_FIRST[8 - np.minimum(clipped, 8)]
    head = (view[end - 16] ^ zeros) & ~_FIRST[16 - np.maximum(clipped, 8)]
    head, tail, decimals, points = _without_point(head, tail)
    digits = _all_digits(head) & _all_digits(tail)
    mantissa = (_eight_digits(head) * np.uint64(10**8) + _eight_digits(tail)).astype(np.float64)
    done = digits & (length > points) & (length - points <= 15)
    values = mantissa / _TENS[np.minimum(decimals, 16)]
    np.negative(values, out=values, where=negative)
    return values, done


def _without_point(head: Words, tail: Words) -> tuple[Words, Words, Ints, Ints]:
    """Close the gap of one decimal point in 16 characters; also return the decimals and the points (0, 1)."""
    in_tail, below_tail = _point(tail)
    in_head, below_head = _point(head)
    one = np.uint64(8)
    closed = (
        (tail & ~(below_tail << one | np.uint64(255))) | (tail & below_tail) << one | head >> np.uint64(56)
    )
    tail_result = np.where(in_tail, closed, tail)
    closed_head = (head & ~(below_head << one | np.uint64(255))) | (head & below_head) << one
    head_result = np.where(in_tail, head << one, np.where(in_head, closed_head, head))
    after_tail = 7 - (np.bitwise_count(below_tail).astype(np.int64) >> 3)
    after_head = 15 - (np.bitwise_count(below_head).astype(np.int64) >> 3)
    decimals = np.where(in_tail, after_tail, np.where(in_head, after_head, 0))
    return head_result, tail_result, decimals, (in_tail | in_head).astype(np.int64)


def _point(word: Words) -> tuple[Flags, Words]:
    """Say whether a word holds a point, and give the mask of the bytes before the first one."""
    other = word ^ np.uint64(0x1E1E1E1E1E1E1E1E)  # a zero byte where the point is
    zero = (other - np.uint64(0x0101010101010101)) & ~other & np.uint64(0x8080808080808080)
    first = zero & (~zero + np.uint64(1))
    return zero != 0, (first >> np.uint64(7)) - np.uint64(1)


def _all_digits(word: Words) -> Flags:
    high = ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080)
    return ~high.astype(np.bool_)


def _eight_digits(word: Words) -> Words:
    """Combine eight digits, the first in the lowest byte, pair by pair."""
    pairs = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (fours * np.uint64(10000) + (fours >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
