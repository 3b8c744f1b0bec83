"""Shared by all packages' commands: two common options, JSON on stdout, notes and warnings on stderr."""

import sys
from pathlib import Path
from typing import Annotated, Any

from linker.base.options import Opt
from linker.base.printable import json_text, print_for_programs

Index = Annotated[Path, Opt(
    "Directory of the index, or elastic+https://HOST:PORT/NAME (or opensearch+…).", "", metavar="DIR")]  # fmt: skip
AsJson = Annotated[bool, Opt("Print the result as JSON.", "--json")]


def print_json(value: Any) -> None:
    """Print a value as one line of JSON on stdout."""
    print_for_programs(json_text(value) + "\n")


def print_result(values: Any, line: object, as_json: bool) -> None:
    """Print a result on stdout: its values as JSON, or a human-readable line."""
    if as_json:
        print_json(values)
    else:
        print(line)


def quantity(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as "1 document" or "1,200 documents"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def note(message: str) -> None:
    """Print a message that is not a result, on stderr."""
    print(message, file=sys.stderr)


def warn(message: str) -> None:
    """Print a warning on stderr."""
    note(f"warning: {message}")
