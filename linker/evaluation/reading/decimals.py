"""Parse byte fields as doubles, rounded as C's `strtod` rounds them: plain decimals, sixteen bytes at a time.

A number of at most 15 digits and a power of ten up to 10^15 are exact doubles, so a single division rounds correctly
(Clinger, "How to read floating point numbers accurately", PLDI 1990). Python's `float` reads all other fields, one by
one. A `Words` array has eight characters per uint64, the first in the lowest byte; shifts by 64 bits or more give 0.
"""

import numpy as np
import numpy.typing as npt

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.evaluation.reading.fields import Fields, Words

_ZEROS = np.uint64(0x3030303030303030)  # XOR with it turns digits into 0…9
_MINUS = np.uint64(ord("-") ^ ord("0"))
_POINTS = np.uint64(0x0101010101010101 * (ord(".") ^ ord("0")))
_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_TENS = 10.0 ** np.arange(16)  # all exactly representable as doubles


def numbers(fields: Fields) -> Float64Array:
    """Return the fields as float64 [n]; NaN where a field is not a number."""
    values, done = _short_decimals(fields)
    if not done.all():
        rest = np.flatnonzero(~done)
        values[rest] = _one_by_one(fields[rest].array())
    return values


def _one_by_one(texts: npt.NDArray[np.bytes_]) -> list[float]:
    """Parse numbers with Python's `float`, but reject 1_000, which it accepts."""
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


def _short_decimals(fields: Fields) -> tuple[Float64Array, BoolArray]:
    """Parse fields like `-12.34`, up to 16 bytes with up to 8 digits before the point; return values and success."""
    low, high = fields.sixteen()
    low, high, length = low ^ _ZEROS, high ^ _ZEROS, fields.length
    negative = (low & np.uint64(255)) == _MINUS
    if negative.any():
        low, high, length = _without_sign(low, high, negative), high >> negative * _8, length - negative
    low, high, whole = _without_point(low, high)
    whole = np.minimum(whole, length)
    digits = length - (whole < length)
    head, tail = _aligned(low, high, digits)
    done = _all_digits(head, tail)
    done &= (digits > 0) & (fields.length <= 16) & ((whole < 8) | (length == 8))
    mantissa = _eight_digits(head)
    mantissa *= np.uint64(10**8)
    mantissa += _eight_digits(tail)
    values: Float64Array = mantissa / _TENS.take(length - whole - 1, mode="clip")
    np.negative(values, out=values, where=negative)
    return values, done


_8 = np.uint64(8)


def _without_sign(low: Words, high: Words, negative: BoolArray) -> Words:
    shift = negative * _8
    return low >> shift | high << (np.uint64(64) - shift)


def _without_point(low: Words, high: Words) -> tuple[Words, Words, Int64Array]:
    """Remove the first point from `low`, and return the number of characters before it, too (8 without a point)."""
    other = low ^ _POINTS  # a point becomes a zero byte
    point = other - _ONES
    point &= ~other
    point &= _HIGH
    point &= -point  # keeps the lowest set bit
    point >>= np.uint64(7)
    before = point - np.uint64(1)
    closed = low >> _8
    closed |= high << np.uint64(56)
    low = closed ^ ((closed ^ low) & before)
    return low, high >> _8, np.bitwise_count(before) >> 3


def _aligned(low: Words, high: Words, digits: Int64Array) -> tuple[Words, Words]:
    shift = ((16 - digits) << 3).view(np.uint64)
    tail = low << (shift - np.uint64(64))
    tail |= low >> (np.uint64(64) - shift)
    tail |= high << shift
    return low << shift, tail


def _all_digits(head: Words, tail: Words) -> BoolArray:
    beyond = head + np.uint64(0x7676767676767676)  # sets the high bit of bytes above 9
    beyond |= head
    beyond |= tail + np.uint64(0x7676767676767676)
    beyond |= tail
    beyond &= _HIGH
    return ~beyond.astype(np.bool_)


def _eight_digits(word: Words) -> Words:
    word = word * np.uint64(10 * 2**8 + 1)
    word >>= _8
    word &= np.uint64(0x00FF00FF00FF00FF)
    word *= np.uint64(100 * 2**16 + 1)
    word >>= np.uint64(16)
    word &= np.uint64(0x0000FFFF0000FFFF)
    word *= np.uint64(10000 * 2**32 + 1)
    word >>= np.uint64(32)
    return word
