"""The pages' tables: a section of `tables/*.jinja` per table, rendered with the results that it is named after.

A line `=== NAME …` begins the table of results/NAME.json, with another of its tables after a dot. In a section, `r` are
the results, lines that begin with `%` are Jinja's statements, and those that begin with `##` comments; what precedes
the first section of a file are macros for all of them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, StrictUndefined, Template

from benchmarks.support.common import recorded

Function = TypeVar("Function", bound=Callable[..., Any])
ENVIRONMENT = Environment(
    line_statement_prefix="%", line_comment_prefix="##", undefined=StrictUndefined, autoescape=False
)
ENVIRONMENT.globals["recorded"] = recorded


def helper(function: Function) -> Function:
    """Register a function under its own name, so that templates can call it or use it as a filter."""
    ENVIRONMENT.filters[function.__name__] = ENVIRONMENT.globals[function.__name__] = function
    return function


def templates() -> dict[str, Template]:
    """Return all tables' templates by name."""
    found: dict[str, Template] = {}
    for path in sorted((Path(__file__).parent / "tables").glob("*.jinja")):
        macros, *sections = re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for section in sections:
            names, _, body = section.partition("\n")
            template = ENVIRONMENT.from_string(macros + body.strip("\n"))
            found |= dict.fromkeys(names.split(), template)
    return found


def lines(template: Template, results: Any) -> Iterator[str]:
    """Yield the lines of a table and of the text around it, as Markdown needs them."""
    return ruled(template.render(r=results).lstrip("\n").removesuffix("\n").split("\n"))


def ruled(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as Markdown needs them for tables: with a rule below the head, and blank lines before and after."""
    before = ""
    for line in lines:
        row, inside = line.startswith("|"), before.startswith("|")
        if row != inside and line and before:
            yield ""
        yield line
        if row and not inside:
            yield "|" + "---|" * (line.count("|") - 1)
        before = line


@helper
def f(value: Any, spec: str = ".3f") -> str:
    """Return a figure in this format; None is empty."""
    return "" if value is None else format(value, spec)


@helper
def cells(values: Iterable[Any], spec: str = ".3f") -> str:
    """Return figures as the cells of a row."""
    return " | ".join(f(value, spec) for value in values)


@helper
def keys(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys of several mappings, each once, in the order in which they occur."""
    return list(dict.fromkeys(key for part in parts for key in part))


@helper
def short(value: float) -> str:
    """Return a figure with three decimals and without a leading zero: .123, but 1.000."""
    return f"{value:.3f}".removeprefix("0")


@helper
def dashed(values: Any) -> str:
    """Return a mean with its interval, as 0.500 (0.400–0.600)."""
    mean, low, high = values
    return f"{mean:.3f} ({low:.3f}–{high:.3f})"


@helper
def bracketed(values: Any, sign: str = "") -> str:
    """Return a mean with its interval, as 0.500 [0.400, 0.600]; with a sign "+", as +0.500 [+0.400, +0.600]."""
    mean, low, high = values
    return f"{mean:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


@helper
def spread(value: Any, digits: int = 3) -> str:
    """Return a figure, or a mean with its deviation over seeds, as 0.500 ± .020; None is empty."""
    if not isinstance(value, dict):
        return f(value, f".{digits}f")
    deviation = "" if value["sd"] is None else " ± " + f"{value['sd']:.{digits}f}".removeprefix("0")
    return f"{value['mean']:.{digits}f}{deviation}"
