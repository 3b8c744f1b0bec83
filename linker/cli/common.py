"""Shared by the commands: option types, JSON on stdout, notes on stderr."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from linker.base.printable import json_text, print_for_programs
from linker.cli.options import flagged

Index = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="Directory of the index, or elastic+https://HOST:PORT/NAME (or opensearch+…).",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def print_json(value: Any) -> None:
    """Print a value as one line of JSON on stdout."""
    print_for_programs(json_text(value) + "\n")


def note(message: str) -> None:
    """Print a message that is not a result, on stderr."""
    print(message, file=sys.stderr)


class Notes(logging.Handler):
    """Shows what the package logs: remarks as they are, warnings as warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message on stderr."""
        (warn if record.levelno >= logging.WARNING else note)(flagged(record.getMessage()))


def warn(message: str) -> None:
    """Print a warning on stderr."""
    note(f"warning: {message}")
