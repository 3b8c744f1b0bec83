"""Make commands of functions, and find the commands of other packages: entry points of the group `linker.commands`.

An entry point names a function with annotated options (by `Opt` or Typer), a pair (a group's help text and its
functions), or a `typer.Typer`. Entry points are read only if the command line names none of linker's own
commands, because reading the entry points of all packages takes longer than a short search.
"""

import functools
import inspect
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from linker.base.files import check_distinct
from linker.base.logs import logger
from linker.cli.options import FLAGS, flags, spread

WRITTEN = {"out", "uncertain", "sample", "quarantine", "plot", "curve", "npy", "faiss", "hnswlib"}
PATHS = ("path", "file", "directory")  # option types for paths
GROUP = "linker.commands"
ENVIRONMENT = {"serve": "LINKER_SERVE"}  # commands whose options may be in variables of this prefix
HEADINGS = {  # commands in the order of the help; those of other packages come last
    "Search and judge": ("serve", "search", "find", "watch", "review"),
    "Link and group": ("link", "group", "align", "triangulate"),
    "Index and rank": ("index", "rank", "calibrate"),
    "Encode": ("train", "plot", "encode", "export", "explain"),
    "Evaluate": ("evaluate", "compare", "reproduce"),
    "Tasks of their own": ("similarity", "sts", "bucc", "evaluate-pairs"),
    "Service": ("mcp", "doctor"),
}
FORMER = {  # flags of 0.2 that have another meaning elsewhere, by command; they work, with a warning, in 0.3
    "encode": {"--precision": "--dtype"},
    "index build": {"--precision": "--dtype", "--index": "--prefix"},
    "index tune": {"--sample": "--held-out"},
    "similarity train": {"--sample": "--neighbours"},
}


class Command(TyperCommand):
    """A command that refuses to overwrite its input files; each command has its own rules for folders."""

    def headings(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the help entries of arguments and options by heading; those without a heading come first."""
        found: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            heading = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
            if record := parameter.get_help_record(ctx):
                found.setdefault(heading, []).append(record)
        return {heading: records for heading, records in found.items() if records}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options by their headings."""
        for heading, records in self.headings(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example, in one line that can be copied."""
        if self.epilog:
            with formatter.section("Example"):
                formatter.write(f"{'':{formatter.current_indent}}{self.epilog}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after replacing former flags by their present names."""
        former = FORMER.get(ctx.command_path.partition(" ")[2], {})
        for number, arg in enumerate(args):
            flag, equals, value = arg.partition("=")
            if now := former.get(flag):
                logger.warning("%s is called %s now; %s will be removed in the next version", flag, now, flag)
                args[number] = now + equals + value
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises InputError if a file that it writes is one that it reads."""
        FLAGS.clear()
        FLAGS.update(flags(self))
        outputs: dict[str, str] = {}
        inputs: list[str] = []
        for parameter in self.params:
            for path in _files(parameter, ctx.params.get(parameter.name or "")):
                if parameter.name in WRITTEN:
                    outputs[parameter.opts[0]] = path
                elif Path(path).exists():  # otherwise the argument is a name, not a file
                    inputs.append(path)
        check_distinct(outputs, inputs)
        return super().invoke(ctx)


def _files(parameter: Any, value: Any) -> Iterator[str]:
    """Yield a parameter's values that may be files: paths, and arguments that are paths or names."""
    if parameter.param_type_name != "argument" and parameter.type.name not in PATHS:
        return
    for path in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(path, (str, Path)) and str(path) and not Path(path).is_dir():
            yield str(path)


class Commands(TyperGroup):
    """The command line's own commands and those from entry points, by headings."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands in the order of the help."""
        known = [*super().list_commands(ctx), *(entry.name for entry in _entries())]
        order = [name for names in HEADINGS.values() for name in names if name in known]
        return [*order, *(name for name in known if name not in order)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their summaries by headings, all summaries in one column."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: command for name, command in known.items() if command and not command.hidden}
        widest = max(map(len, shown))
        heading_of = {name: heading for heading, names in HEADINGS.items() for name in names}
        for heading, group in groupby(shown, lambda name: heading_of.get(name, "Of other packages")):
            with formatter.section(heading):
                width = formatter.width
                formatter.write_dl([(f"{n:{widest}}", shown[n].get_short_help_str(width)) for n in group])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; None if there is none."""
        return super().get_command(ctx, cmd_name) or _load(cmd_name)


def command_group(help_text: str, commands: Iterable[Any]) -> typer.Typer:
    """Return a group of commands made from functions; a pair (name, function) overrides the function's name."""
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    for command in commands:
        name, function = command if isinstance(command, tuple) else (None, command)
        register(group, function, name)
    return group


def register(app: typer.Typer, function: Any, name: str | None = None) -> None:
    """Make a function a command; the end of its docstring, after `Example:`, is shown below its options."""
    text, _, example = (inspect.getdoc(function) or "").partition("\n\nExample: ")
    prefix = ENVIRONMENT.get(name or function.__name__)
    app.command(
        name, cls=Command, help=text, epilog=example or None, context_settings={"auto_envvar_prefix": prefix}
    )(spread(function))


def every(app: typer.Typer) -> dict[str, Any]:
    """Return all commands of a command line by their full names, such as "index build"."""
    return dict(_walk(typer.main.get_command(app), ""))


def _walk(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    context = group.make_context(prefix, [], resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from _walk(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


@functools.cache
def _entries() -> list[Any]:
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


@functools.cache
def _load(name: str) -> Any:
    for entry in _entries():
        if entry.name == name:
            thing = entry.load()
            if isinstance(thing, tuple):
                thing = command_group(*thing)
            if not isinstance(thing, typer.Typer):
                single = typer.Typer(add_completion=False, rich_markup_mode=None)
                register(single, thing, name)
                thing = single
            command: Any = typer.main.get_command(thing)
            command.name = name
            return command
    return None
