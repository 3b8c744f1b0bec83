"""Strict validation of untrusted JSON: a Check of a value at a location raises SchemaError if the value is invalid."""

import json
import math
import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

Check = Callable[[Any, str], None]
MOST = 1 << 53  # the largest integer that all JSON parsers agree on


class SchemaError(ValueError):
    """A value is invalid; the message names its location and the value."""


def parse(data: bytes) -> Any:
    """Return the JSON value in `data`. Raises SchemaError, also for a repeated key, NaN or overly deep nesting."""
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
    raise SchemaError(f"{constant} is not JSON")


def refuse(where: str, value: Any, expected: str) -> NoReturn:
    """Raise SchemaError for an invalid value, which is shortened in the message."""
    raise SchemaError(f"{where} is {reprlib.repr(value)}, not {expected}")


def whole(low: int = 0, high: int = MOST) -> Check:
    """Return a check for a whole number from `low` to `high`."""

    def check(value: Any, where: str) -> None:
        if type(value) is not int or not low <= value <= high:
            refuse(where, value, f"a whole number from {low} to {high}")

    return check


def number(low: float, high: float) -> Check:
    """Return a check for a finite number from `low` to `high`."""

    def check(value: Any, where: str) -> None:
        if type(value) not in (int, float) or not low <= value <= high or not math.isfinite(value):
            refuse(where, value, f"a number from {low} to {high}")

    return check


def flag(value: Any, where: str) -> None:
    """Check for true or false. Raises SchemaError."""
    if type(value) is not bool:
        refuse(where, value, "true or false")


def text(longest: int = 4096, pattern: str | None = None, what: str = "a string") -> Check:
    """Return a check for a string of at most `longest` characters that matches `pattern`.

    Without a pattern, any string without NUL and lone surrogates is accepted. `what` describes it in errors.
    """
    form = re.compile(pattern or r"[^\0\ud800-\udfff]*", re.DOTALL)

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or len(value) > longest or not form.fullmatch(value):
            refuse(where, value, what)

    return check


def one_of(values: Collection[str]) -> Check:
    """Return a check for one of the strings `values`."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            refuse(where, value, f"one of {', '.join(values)}")

    return check


def optional(check: Check) -> Check:
    """Return a check for null or anything that `check` accepts."""
    return lambda value, where: None if value is None else check(value, where)


def several(check: Check, most: int, least: int = 0) -> Check:
    """Return a check for a list of `least` to `most` values, each of which `check` accepts."""

    def check_all(values: Any, where: str) -> None:
        if not isinstance(values, list) or not least <= len(values) <= most:
            refuse(where, values, f"a list of {least} to {most} values")
        for position, value in enumerate(values):
            check(value, f"{where}[{position}]")

    return check_all


def mapping(key: Check, value: Check, most: int) -> Check:
    """Return a check for an object of at most `most` entries whose keys and values `key` and `value` accept."""

    def check_all(values: Any, where: str) -> None:
        if not isinstance(values, dict) or len(values) > most:
            refuse(where, values, f"an object of at most {most} entries")
        for name, content in values.items():
            key(name, f"a key of {where}")
            value(content, f"{where}[{name!r}]")

    return check_all


def record(checks: Mapping[str, Check], absent: Collection[str] = ()) -> Check:
    """Return a check for an object with exactly the keys of `checks`; those in `absent` may be missing."""

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
