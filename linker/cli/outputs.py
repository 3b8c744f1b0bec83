"""Before a command runs: no file that it writes may be one that it reads, or another one that it writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from linker.base.files import check_distinct

WRITTEN = {"out", "uncertain", "sample", "quarantine", "plot", "curve", "npy", "faiss", "hnswlib"}
PATHS = ("path", "file", "directory")  # types of options


class Command(TyperCommand):
    """A command that refuses to replace its own inputs. Folders are left to the command: each has rules of its own."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises InputError where a file that it writes is one that it reads."""
        outputs: dict[str, str] = {}
        inputs: list[str] = []
        for parameter in self.params:
            for path in _files(parameter, ctx.params.get(parameter.name or "")):
                if parameter.name in WRITTEN:
                    outputs[parameter.opts[0]] = path
                elif Path(path).exists():  # an argument may also be a name
                    inputs.append(path)
        check_distinct(outputs, inputs)
        return super().invoke(ctx)


def _files(parameter: Any, value: Any) -> Iterator[str]:
    """Yield what a parameter names that may be a file: paths, and arguments that are paths or names."""
    if parameter.param_type_name != "argument" and parameter.type.name not in PATHS:
        return
    for path in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(path, (str, Path)) and str(path) and not Path(path).is_dir():
            yield str(path)
