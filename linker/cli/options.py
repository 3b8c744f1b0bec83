"""Typer signatures made from option records, and flags in place of argument names in messages."""

import dataclasses
import inspect
import re
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from linker.base.errors import UsageError
from linker.base.options import Option, option_of, options
from linker.cli import completion

EMPTY, BY_NAME = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
ARGUMENT = re.compile(r"`([a-z][a-z0-9_]*)`")
OF_TABLES = {"id_column", "text_column", "title_column", "make_ids", "header_row"}
FLAGS: dict[str, str] = {}  # flags of the running command, by parameter name


def spread(command: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command so that the fields of its option records become its parameters, as Typer needs them.

    Typer calls it with the options; it builds the records and calls the command with them.
    """
    hints = get_type_hints(command, include_extras=True)
    records = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    signature = inspect.signature(command)
    parameters = [p for parameter in signature.parameters.values() for p in _spread(parameter, hints)]

    def wrapper(**given: Any) -> Any:
        for name, record in records.items():
            given[name] = _build(record, given)
        return command(**given)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # of all functions
    wrapper.__name__, wrapper.__module__, wrapper.__doc__ = (
        command.__name__,
        command.__module__,
        command.__doc__,
    )
    return wrapper


def _spread(parameter: inspect.Parameter, hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    name = parameter.name
    if dataclasses.is_dataclass(hints[name]):
        yield from map(_parameter, options(hints[name]))
    elif option := option_of(name, hints[name], parameter.default):
        yield _parameter(option)
    else:
        yield parameter.replace(annotation=hints[name], kind=BY_NAME)


def _build(record: Any, given: dict[str, Any]) -> Any:
    """Build a record from its options, which are removed from `given`. Raises BadParameter if they are invalid."""
    pairs = {option.name: (option, given.pop(option.name)) for option in options(record)}
    fields = {
        name: not value if option.about.off else value
        for name, (option, value) in pairs.items()
        if value is not None and value != []  # an omitted option keeps the record's default
    }
    try:
        return record(**fields)
    except UsageError as e:
        raise typer.BadParameter(with_flags(str(e))) from None


def _parameter(option: Option) -> inspect.Parameter:
    """Return an option with Typer's annotation."""
    about, default, text = option.about, option.default, option.about.help
    if isinstance(about.default, str):
        text += f" [default: {about.default}]"
    if about.required:
        default = EMPTY
    elif about.off:
        default = not default
    elif default == ():
        default = None
    kind = about.read or _read(option.type)
    facts: dict[str, Any] = {
        "metavar": about.metavar, "help": text, "min": about.low, "max": about.high,
        "show_default": about.default is True, "rich_help_panel": about.group or None,
        "autocompletion": getattr(completion, about.complete) if about.complete else None,
    }  # fmt: skip
    flags = f"--{option.name.replace('_', '-')}" if about.flag is None else about.flag
    # The help of `linker serve` says once which variables its options may be in.
    info = typer.Option(*flags.split(), show_envvar=False, **facts) if flags else typer.Argument(**facts)
    kind = kind if default is not None else kind | None
    return inspect.Parameter(option.name, BY_NAME, default=default, annotation=Annotated[kind, info])


def _read(kind: Any) -> Any:
    """Return the type by which Typer reads a field's type: a path for `str | Path`, a list for a sequence of them."""
    origin, kinds = get_origin(kind), [_read(one) for one in get_args(kind) if one is not types.NoneType]
    if origin is Sequence:
        return types.GenericAlias(list, (kinds[0],))
    if origin not in (Union, types.UnionType):
        return kind
    lists = [one for one in kinds if get_origin(one) is list]
    return lists[0] if lists else Path if Path in kinds else kinds[0]


def flags(command: Any) -> dict[str, str]:
    """Return a command's flags by parameter name: of a pair of flags, the one that changes the default."""
    return {
        p.name: (p.secondary_opts if p.default is True and p.secondary_opts else p.opts)[0]
        for p in command.params
        if p.param_type_name == "option"
    }


def with_flags(text: str) -> str:
    """Return a message of the library for the command line: with flags in place of `arguments`.

    Advice on table options, after a semicolon, is left out if the running command has none.
    """
    if FLAGS and not FLAGS.keys() & OF_TABLES:
        first, *advice = text.split("; ")
        text = "; ".join([first, *(one for one in advice if not OF_TABLES & {*ARGUMENT.findall(one)})])
    return ARGUMENT.sub(lambda match: FLAGS.get(match[1], f"--{match[1].replace('_', '-')}"), text)
