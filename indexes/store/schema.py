"""Strict reading of JSON that may come from elsewhere: exact keys, types and ranges, and no surprise in between.

A check takes a value and the place where it stands, and raises SchemaError unless the value is as it should be.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

Check = Callable[[Any, str], None]
MOST = 1 << 53  # the largest whole number that every reader of JSON agrees on


class SchemaError(ValueError):
    """A value is not what it should be; the text names the place and the value."""


def parse(data: bytes) -> Any:
    """Return the JSON value in `data`. Raises SchemaError, also for a repeated key, NaN and nesting without end."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_not_json)
    except RecursionError:
        raise SchemaError("it is nested too deeply") from None
    except ValueError as e:
        raise SchemaError(f"it is not JSON ({e})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise SchemaError("a key is repeated")
    return values


def _not_json(constant: str) -> NoReturn:
    raise SchemaError(f"{constant} is no JSON")


def refuse(where: str, value: Any, expected: str) -> NoReturn:
    """Raise SchemaError for a value; a long one is shortened."""
    raise SchemaError(f"{where} is {reprlib.repr(value)}, not {expected}")


def whole(low: int = 0, high: int = MOST) -> Check:
    """Check for a whole number from `low` to `high`."""

    def check(value: Any, where: str) -> None:
        if type(value) is not int or not low <= value <= high:
            refuse(where, value, f"a whole number from {low} to {high}")

    return check


def number(low: float, high: float) -> Check:
    """Check for a finite number from `low` to `high`."""

    def check(value: Any, where: str) -> None:
        if type(value) not in (int, float) or not low <= value <= high or not math.isfinite(value):
            refuse(where, value, f"a number from {low} to {high}")

    return check


def flag(value: Any, where: str) -> None:
    """Check for true or false."""
    if type(value) is not bool:
        refuse(where, value, "true or false")


def text(longest: int = 4096, pattern: str | None = None, what: str = "a text") -> Check:
    """Check for a text of at most `longest` characters, none of them NUL or half a character, that fits `pattern`."""
    form = re.compile(pattern or r"[^\0\ud800-\udfff]*", re.DOTALL)

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or len(value) > longest or not form.fullmatch(value):
            refuse(where, value, what)

    return check


def one_of(values: Collection[str]) -> Check:
    """Check for one of some texts."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            refuse(where, value, f"one of {', '.join(values)}")

    return check


def optional(check: Check) -> Check:
    """Check for null, or what `check` accepts."""
    return lambda value, where: None if value is None else check(value, where)


def several(check: Check, most: int, least: int = 0) -> Check:
    """Check for a list of `least` to `most` values that `check` accepts."""

    def check_all(values: Any, where: str) -> None:
        if not isinstance(values, list) or not least <= len(values) <= most:
            refuse(where, values, f"a list of {least} to {most}")
        for place, value in enumerate(values):
            check(value, f"{where}[{place}]")

    return check_all


def mapping(key: Check, value: Check, most: int) -> Check:
    """Check for an object of at most `most` entries with any keys that `key` accepts."""

    def check_all(values: Any, where: str) -> None:
        if not isinstance(values, dict) or len(values) > most:
            refuse(where, values, f"an object of at most {most} entries")
        for name, content in values.items():
            key(name, f"a key of {where}")
            value(content, f"{where}[{name!r}]")

    return check_all


def record(checks: Mapping[str, Check], absent: Collection[str] = ()) -> Check:
    """Check for an object with exactly these keys; those in `absent` may be left out."""

    def check_all(values: Any, where: str) -> None:
        if not isinstance(values, dict):
            refuse(where, values, "an object")
        if unknown := sorted(values.keys() - checks.keys()):
            raise SchemaError(f"{where} has the unknown key {reprlib.repr(unknown[0])}")
        if missing := sorted(checks.keys() - values.keys() - set(absent)):
            raise SchemaError(f"{where} lacks the key {missing[0]!r}")
        for name, value in values.items():
            checks[name](value, f"{where}.{name}")

    return check_all
