"""Option records: each option of a command is declared once, as an annotated field of a frozen dataclass.

The command line, Python's signatures, HTTP and MCP are generated from the fields. An option's type carries an `Opt`;
a field that is not on the command line has its type as a string, so that nothing heavy is imported for it.
"""

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_origin

FLAG = re.compile(r"--([a-z][a-z-]*)")
MODULE = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")
P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Opt:
    """The description of an option, apart from its name, type and default.

    `flag`: its flag, if it differs from its name: "-k", "--layout/--no-layout"; "" makes it an argument. `group`: the
    heading above it in the help. `low`, `high`: bounds of a number. `only`: the methods that use it, if not all.
    `complete`: the function of `linker.cli.completion` that completes its values. `required`: mandatory on the
    command line, though Python has a default. `read`: the type on the command line, if Python accepts more types.
    `off`: the flag sets a bool to False. `default`: whether the help shows the default, or the text shown instead.
    """

    help: str = ""
    flag: str | None = None
    group: str = ""
    metavar: str | None = None
    low: float | None = None
    high: float | None = None
    only: tuple[str, ...] = ()
    complete: str = ""
    required: bool = False
    read: Any = None
    off: bool = False
    default: str | bool = True


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a record: the field's name, type and default (`inspect.Parameter.empty`: none), and its `Opt`."""

    name: str
    type: Any
    default: Any
    about: Opt


def option_of(name: str, annotation: Any, default: Any) -> Option | None:
    """Return the option that an annotation describes, if any."""
    if get_origin(annotation) is not Annotated:
        return None
    kind, *about = get_args(annotation)
    return next((Option(name, kind, default, opt) for opt in about if isinstance(opt, Opt)), None)


def options(record: type[Any]) -> Iterator[Option]:
    """Yield the options of a record in the order of its fields."""
    for field in dataclasses.fields(record):
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        if option := option_of(field.name, field.type, default):
            yield option


def describe(record: type[Any], name: str) -> tuple[Option, str]:
    """Return an option of a record, and its help text for requests, with field names in backticks instead of flags."""
    option = next(option for option in options(record) if option.name == name)
    return option, FLAG.sub(lambda match: f"`{match[1].replace('-', '_')}`", option.about.help)


def values(record: Any) -> dict[str, Any]:
    """Return the values of a record by field name, as keyword arguments for a function decorated with `takes`."""
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def takes(record: Callable[P, T]) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Decorate a function that takes a record, so that callers pass the record's fields as arguments instead."""

    def decorate(function: Callable[[T], R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(record(*args, **kwargs))

        result = inspect.signature(function).return_annotation
        wrapper.__signature__ = _plain(record).replace(return_annotation=result)  # type: ignore[attr-defined]  # of all
        return wrapper

    return decorate


def shown(record: type[T]) -> type[T]:
    """Decorate a record that users create, so that its signature shows the fields' types without their `Opt`s."""
    record.__signature__ = _plain(record)  # type: ignore[attr-defined]  # of all classes
    return record


def _plain(record: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a record with each annotation reduced to its type, as text."""
    signature = inspect.signature(record)
    return signature.replace(
        parameters=[p.replace(annotation=_text(p.annotation)) for p in signature.parameters.values()]
    )


def _text(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    kind = getattr(kind, "__forward_arg__", kind)
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    text = MODULE.sub("", text)
    return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", text)
