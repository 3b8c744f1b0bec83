"""Read TOML strictly into frozen dataclasses: an unknown key is an error that suggests the closest known one."""

import dataclasses
import difflib
import tomllib
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from linker.base.errors import ConfigError
from linker.base.files import open_input

T = TypeVar("T")


def load(path: Path, cls: type[T], overrides: Sequence[str] = ()) -> T:
    """Read a TOML file into `cls`, a frozen dataclass of values, Literals and nested dataclasses.

    `overrides` are strings such as `training.lr=0.001` (the value is TOML; a bare word is a string).
    Raises ConfigError naming the file and the key.
    """
    try:
        with open_input(path) as file:
            values = _toml(file.read().decode())
    except (OSError, ValueError) as e:
        raise ConfigError(f"cannot read {path}: {getattr(e, 'strerror', None) or e}") from None
    return build(cls, values, overrides, str(path))


def build(cls: type[T], values: dict[str, Any], overrides: Sequence[str], where: str) -> T:
    """Return `values` as a `cls`, after applying `overrides` to them in place. Raises ConfigError naming the key."""
    for text in overrides:
        _override(values, text)
    return _build(cls, values, where, "")


def _toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError for every mistake, including nesting too deep for the parser."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def _override(values: dict[str, Any], text: str) -> None:
    key, equals, raw = text.partition("=")
    *tables, name = [part.strip() for part in key.split(".")]
    if not equals or not all([*tables, name]):
        raise ConfigError(f"cannot read --set {text!r}: write table.key=value")
    try:
        value = _toml(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        value = raw.strip()
    except ValueError as e:
        raise ConfigError(f"cannot read --set {text[:80]!r}: {e}") from None
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {text!r}: {table} is a value, not a table")
    values[name] = value


def changed(default: T, values: Mapping[str, Any], where: str, prefix: str, also: Collection[str] = ()) -> T:
    """Return the dataclass `default` with the `values` of a table, checked and converted.

    `also` lists known keys of the table that are not fields of the dataclass.
    Raises ConfigError naming `where` and the key.
    """
    converted = _convert_all(type(default), values, where, prefix, also)
    try:
        return dataclasses.replace(default, **converted)  # type: ignore[type-var]  # T is a dataclass by contract
    except ValueError as e:
        raise ConfigError(f"{where}: {e}") from None


def _build(cls: type[T], values: Mapping[str, Any], where: str, prefix: str) -> T:
    if hasattr(cls, "read_table"):  # the class chooses its fields based on the table
        return typing.cast("T", getattr(cls, "read_table")(values, where, prefix))  # noqa: B009 - for mypy's sake
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # T is a dataclass by contract
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.name not in values:
            raise ConfigError(f"{where}: missing key {prefix}{field.name}")
    converted = _convert_all(cls, values, where, prefix)
    try:
        return cls(**converted)
    except ValueError as e:  # a dataclass may reject values in __post_init__
        raise ConfigError(f"{where}: {e}") from None


def _convert_all(
    cls: type[Any], values: Mapping[str, Any], where: str, prefix: str, also: Collection[str] = ()
) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    known = [*also, *(field.name for field in dataclasses.fields(cls))]
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known here: {', '.join(known)}"
            raise ConfigError(f"{where}: unknown key {prefix}{key}: {hint}")
    return {k: _convert(hints[k], v, where, f"{prefix}{k}") for k, v in values.items()}


def _convert(hint: Any, value: Any, where: str, key: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:  # TOML has no null, JSON does
            return None
        return _convert_union([a for a in arguments if a is not type(None)], value, where, key)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        return _build(hint, value, where, f"{key}.")
    if origin is Literal:
        if value in arguments:
            return value
        raise ConfigError(f"{where}: {key} = {value!r}: choose one of {', '.join(map(repr, arguments))}")
    if origin is tuple and isinstance(value, list):
        return tuple(_convert(arguments[0], v, where, key) for v in value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(f"{where}: {key} is too large for a floating-point number") from None
    if isinstance(hint, type) and type(value) is hint:
        return value
    expected = getattr(hint, "__name__", None) or str(hint)
    raise ConfigError(f"{where}: {key} = {value!r} is {type(value).__name__}, expected {expected}")


def _convert_union(hints: Sequence[Any], value: Any, where: str, key: str) -> Any:
    for hint in hints[:-1]:
        try:
            return _convert(hint, value, where, key)
        except ConfigError:
            continue
    return _convert(hints[-1], value, where, key)
