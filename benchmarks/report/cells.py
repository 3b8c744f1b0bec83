"""Building blocks of the pages' tables: renderers by name, and figures as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Renderer = Callable[[Any], Iterator[str]]
TABLES: dict[str, Renderer] = {}


def renders(*names: str) -> Callable[[Renderer], Renderer]:
    """Register a renderer of results: the name is their file's, with one of their tables after a dot."""

    def register(renderer: Renderer) -> Renderer:
        TABLES.update(dict.fromkeys(names, renderer))
        return renderer

    return register


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


def short(value: float) -> str:
    """Return a figure with three decimals and without a leading zero: .123, but 1.000."""
    return f"{value:.3f}".removeprefix("0")


def dashed(values: Any) -> str:
    """Return a mean with its interval, as 0.500 (0.400–0.600)."""
    mean, low, high = values
    return f"{mean:.3f} ({low:.3f}–{high:.3f})"


def bracketed(values: Any, sign: str = "") -> str:
    """Return a mean with its interval, as 0.500 [0.400, 0.600]; with a sign "+", as +0.500 [+0.400, +0.600]."""
    mean, low, high = values
    return f"{mean:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def spread(value: Any, digits: int = 3) -> str:
    """Return a figure, or a mean with its deviation over seeds, as 0.500 ± .020; None is empty."""
    if value is None:
        return ""
    if isinstance(value, dict):
        deviation = "" if value["sd"] is None else " ± " + f"{value['sd']:.{digits}f}".removeprefix("0")
        return f"{value['mean']:.{digits}f}{deviation}"
    return f"{value:.{digits}f}"
