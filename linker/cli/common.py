"""Shared by the commands: option types, JSON on stdout, notes on stderr."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from linker.base.printable import json_text, print_for_programs
from linker.cli import completion

Index = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="Directory of the index, or elastic+https://HOST:PORT/NAME (or opensearch+…).",
        show_default=False,
    ),
]
ModeOption = Annotated[
    Literal["hybrid", "dense", "bm25"] | None,
    typer.Option(help="How to search. Default: the mode that the index was tuned to.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Only documents whose metadata fit: lang=en, lang=en|de, lang!=en, likes>100, date>=2021-01-31. "
        "Repeatable: all must fit, but of one field= any value.",
        show_default=False,
        autocompletion=completion.conditions,
    ),
]
EncoderOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|PATH",
        help="Where the index's encoder is now, if it has moved.",
        show_default=False,
        autocompletion=completion.encoders,
    ),
]
Languages = Annotated[
    str | None,
    typer.Option(
        metavar="FR-EN",
        help="Codes of the two languages. Default: from the pages' metadata (language) or file names (fr.jsonl).",
        show_default=False,
    ),
]

K1 = Annotated[
    float | None,
    typer.Option(
        "--k1", metavar="NUMBER", help="BM25's k1: saturation of counts in documents.", show_default=False
    ),
]
B = Annotated[
    float | None,
    typer.Option(
        "--b", metavar="NUMBER", help="BM25's b: discount of long documents, 0 to 1.", show_default=False
    ),
]
K3 = Annotated[
    float | None,
    typer.Option(
        "--k3",
        metavar="NUMBER",
        help="BM25's k3: saturation of counts in queries; 0: each term once, inf: each repetition.",
        show_default=False,
    ),
]

FieldWeight = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=NUMBER",
        help="Weight of a field in BM25; 0 leaves it out. Repeatable.",
        show_default=False,
    ),
]
FieldB = Annotated[
    list[str] | None,
    typer.Option(
        "--field-b", metavar="FIELD=NUMBER", help="BM25's b of a field. Repeatable.", show_default=False
    ),
]

PrecisionOption = Annotated[
    Literal["float32", "bfloat16"],
    typer.Option(
        help="bfloat16 is faster on processors that support it; its vectors have a cosine > .999 with float32's."
    ),
]
CompileOption = Annotated[
    bool,
    typer.Option(
        "--compile",
        help="Compile the encoder first (needs a C++ compiler and a minute); pays off for long texts.",
    ),
]


def numbers_of(option: str, values: list[str] | None) -> dict[str, float]:
    """Return the numbers by name of a repeated option FIELD=NUMBER. Raises typer.BadParameter."""
    numbers = {}
    for value in values or ():
        name, _, number = value.rpartition("=")
        try:
            numbers[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise typer.BadParameter(f"{option} {value}: write {option} FIELD=NUMBER")
    return numbers


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
        (warn if record.levelno >= logging.WARNING else note)(record.getMessage())


def warn(message: str) -> None:
    """Print a warning on stderr."""
    note(f"warning: {message}")
