"""Commands provided by other parts of linker and other packages: the entry points of the group `linker.commands`.

Each names a function whose options are annotated (with `Opt`, or as Typer does), a pair of a help text and the
functions of a group, or a `typer.Typer`. They are looked for only if the command line names none of linker's own
commands, because reading the entry points of all packages takes longer than a short search.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from linker.cli.options import spread
from linker.cli.outputs import Command

GROUP = "linker.commands"


class Commands(TyperGroup):
    """The command line's own commands, followed by those from entry points."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *(entry.name for entry in _entries())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; None if there is none."""
        return super().get_command(ctx, cmd_name) or _found(cmd_name)


def grouped(help_text: str, commands: Iterable[Any]) -> typer.Typer:
    """Return functions as the commands of a group; a pair (name, function) overrides the function's name."""
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    for command in commands:
        name, function = command if isinstance(command, tuple) else (None, command)
        register(group, function, name)
    return group


def register(app: typer.Typer, function: Any, name: str | None = None) -> None:
    """Make a function a command; the end of its docstring, after `Example:`, is shown below its options."""
    text, _, example = (inspect.getdoc(function) or "").partition("\n\nExample: ")
    app.command(name, cls=Command, help=text, epilog=example or None)(spread(function))


def every(app: typer.Typer) -> dict[str, Any]:
    """Return all commands of a command line by their full names, such as "index build"."""
    return dict(_walked(typer.main.get_command(app), ""))


def _walked(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    context = group.make_context(prefix, [], resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from _walked(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _entries() -> list[Any]:
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _found(name: str) -> Any:
    for entry in _entries():
        if entry.name == name:
            thing = entry.load()
            if isinstance(thing, tuple):
                thing = grouped(*thing)
            if not isinstance(thing, typer.Typer):
                single = typer.Typer(add_completion=False, rich_markup_mode=None)
                register(single, thing, name)
                thing = single
            command: Any = typer.main.get_command(thing)
            command.name = name
            return command
    return None
