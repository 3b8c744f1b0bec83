"""A check before a command runs: no output file may also be an input file or another output file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from linker.base.files import check_distinct
from linker.cli.options import FLAGS, flags

WRITTEN = {"out", "uncertain", "sample", "quarantine", "plot", "curve", "npy", "faiss", "hnswlib"}
PATHS = ("path", "file", "directory")  # option types for paths


class Command(TyperCommand):
    """A command that refuses to replace its own inputs. Folders are left to the command: each has its own rules."""

    def headings(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the help entries of arguments and options by heading: those without one come first."""
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
