"""Inputs made from sound ones: bytes, numbers, lines and JSON values changed at random, from one seed."""

import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

LONGEST = 1 << 17  # maximum bytes of an input
INTEGERS = (
    0, 1, -1, 2, 3, 7, 8, 15, 16, 31, 63, 64, 127, 128, 255, 256, 4095, 4096, 4097, 32767, 32768, 65535,
    65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 62), (1 << 63) - 1, -(1 << 63),
    (1 << 64) - 1,
)  # fmt: skip
NUMBERS = (
    *(str(n).encode() for n in INTEGERS), b"1e308", b"1e999", b"-1e-320", b"nan", b"inf", b"-inf", b"0x10",
    b"1_000", b"", b"9" * 400, "٣".encode(), b"-0", b"+1", b".5", b"5.",
)  # fmt: skip
TOKENS = (
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b" ",
    b'"',
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc2\xa0",
    "\u2028".encode(),
    b"\x1b[31m",
    b"\x7f",
    b"../",
    b"/dev/zero",
    b"[" * 300,
    b"{" * 300,
    b"]",
    b"}",
    b"null",
    b"#",
    b"=",
    b"_id",
    b"id",
    b"text",
    b"\x1f\x8b\x08\0",
    b"\xf0\x9f\x98\x80",
    b"a" * 300,
)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.5, 1e308, 1 << 31, 1 << 40, 1 << 63, -(1 << 63), 100_000, "", "x", "0",
    "../../x", "/dev/zero", "\0", "\ud7ff\x1b]0;x\7", "a" * 1000, [], {}, [[]], [None], [1, "a"], {"": None},
    {"a": {"b": []}},
)  # fmt: skip

Change = Callable[[random.Random, bytearray, "Material"], None]


class Material:
    """The material for cases: sound inputs to start from and to splice, and words of the format."""

    def __init__(self, seeds: Sequence[bytes], tokens: Sequence[bytes] = ()) -> None:
        self.seeds, self.tokens = tuple(seeds), (*TOKENS, *tokens, *tokens, *tokens)


def mutated(rng: random.Random, material: Material) -> bytes:
    """Return a sound input with one to about ten changes."""
    data = bytearray(rng.choice(material.seeds))
    if rng.random() < 0.5 and (changed := _json_changed(rng, bytes(data))) is not None:
        data = bytearray(changed)
        if rng.random() < 0.8:
            return bytes(data[:LONGEST])
    while True:
        rng.choice(CHANGES)(rng, data, material)
        if rng.random() < 0.45:
            return bytes(data[:LONGEST])


def _span(rng: random.Random, data: bytearray, most: int = 64) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.randint(1, most))


def flip_bits(rng: random.Random, data: bytearray, _: Material) -> None:
    for _again in range(rng.choice((1, 1, 1, 2, 8))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_bytes(rng: random.Random, data: bytearray, _: Material) -> None:
    begin, end = _span(rng, data, 8)
    data[begin:end] = bytes(
        [rng.choice((0, 1, 9, 10, 13, 32, 34, 44, 127, 128, 254, 255, rng.randrange(256)))]
    ) * (end - begin)


def set_integer(rng: random.Random, data: bytearray, _: Material) -> None:
    """Write a boundary value, or one near the old value, mostly at offsets aligned to its size."""
    size, kind = rng.choice(((1, "B"), (2, "<H"), (4, "<I"), (4, "<I"), (8, "<Q"), (8, "<Q")))
    if len(data) < size:
        return
    at = rng.randrange(len(data) - size + 1)
    at -= at % size if rng.random() < 0.7 else 0
    before = struct.unpack_from(kind, data, at)[0]
    value = rng.choice(INTEGERS) if rng.random() < 0.6 else before + rng.randint(-4, 4)
    struct.pack_into(kind, data, at, value % (1 << 8 * size))


def set_float(rng: random.Random, data: bytearray, _: Material) -> None:
    if len(data) >= 4:
        at = rng.randrange(len(data) - 3) & ~3
        struct.pack_into(
            "<f", data, at, rng.choice((0.0, -0.0, float("nan"), float("inf"), -float("inf"), 3e38, 1e-45))
        )


def set_number(rng: random.Random, data: bytearray, _: Material) -> None:
    """Replace a number written in digits."""
    if found := list(re.finditer(rb"-?[0-9][0-9.e+-]*", data[:LONGEST])):
        match = rng.choice(found)
        data[match.start() : match.end()] = rng.choice(NUMBERS)


def truncate(rng: random.Random, data: bytearray, _: Material) -> None:
    del data[rng.randrange(len(data) + 1) :]


def delete(rng: random.Random, data: bytearray, _: Material) -> None:
    begin, end = _span(rng, data)
    del data[begin:end]


def repeat(rng: random.Random, data: bytearray, _: Material) -> None:
    begin, end = _span(rng, data)
    data[begin:begin] = data[begin:end] * rng.choice((1, 1, 2, 16, 300))


def insert_token(rng: random.Random, data: bytearray, material: Material) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(material.tokens)


def replace_by_token(rng: random.Random, data: bytearray, material: Material) -> None:
    begin, end = _span(rng, data, 12)
    data[begin:end] = rng.choice(material.tokens)


def splice(rng: random.Random, data: bytearray, material: Material) -> None:
    """Replace a piece with one from another sound input, at the same offset about half the time."""
    other = rng.choice(material.seeds)
    begin, end = _span(rng, data, 256)
    source = begin if rng.random() < 0.5 else rng.randrange(len(other) + 1)
    data[begin:end] = other[source : source + end - begin]


def swap_lines(rng: random.Random, data: bytearray, _: Material) -> None:
    lines = data.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a] if rng.random() < 0.5 else lines[b]
    data[:] = b"\n".join(lines)


def delete_line(rng: random.Random, data: bytearray, _: Material) -> None:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    data[:] = b"\n".join(lines)


CHANGES: tuple[Change, ...] = (
    flip_bits, flip_bits, set_bytes, set_integer, set_integer, set_integer, set_float, set_number, set_number,
    truncate, delete, repeat, insert_token, insert_token, replace_by_token, splice, swap_lines, delete_line,
)  # fmt: skip


def _json_changed(rng: random.Random, data: bytes) -> bytes | None:
    """Change one value in JSON, or in one of JSON lines; None if it is neither."""
    lines = [data] if rng.random() < 0.5 else data.split(b"\n")
    at = rng.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return None
    for _ in range(rng.choice((1, 1, 2, 4))):
        value = _changed(rng, value)
    lines[at] = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")
    return b"\n".join(lines)


def _changed(rng: random.Random, value: Any) -> Any:
    """Descend to a random value of a tree and replace it, remove it, or rename it."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.15:
        return rng.choice(VALUES)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        action = rng.random()
        if action < 0.15:
            return value[:at] + value[at + 1 :]
        if action < 0.3:
            return [*value, value[at]]
        return [*value[:at], _changed(rng, value[at]), *value[at + 1 :]]
    key = rng.choice(list(value))
    action = rng.random()
    if action < 0.15:
        return {k: v for k, v in value.items() if k != key}
    if action < 0.25:
        return {
            (rng.choice(("", "x", "../x", key + "\0", "é")) if k == key else k): v for k, v in value.items()
        }
    return {**value, key: _changed(rng, value[key])}
