"""A table of strings, whose first row is the header, as plain text, Markdown, LaTeX or HTML."""

from __future__ import annotations

import html as html_module
import re
from collections.abc import Sequence

from linker.printable import on_one_line

Cells = Sequence[Sequence[str]]

_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    # At the beginning of a row, these would be read as arguments of the preceding \\.
    "[": "{[}",
    "*": "{*}",
}
# Markdown takes an underscore inside a word literally, and names of measures have them.
_MARKDOWN = re.compile(r"[\\`*~$|\[\]]|(?<![^\W_])_|_(?![^\W_])")


def plain(cells: Cells) -> str:
    """Return aligned columns, separated by two spaces."""
    cells = _shown(cells)
    widths = _widths(cells)
    return "".join("  ".join(_pad(row, widths)).rstrip() + "\n" for row in cells)


def markdown(cells: Cells) -> str:
    """Return a Markdown table; all columns but the first two are aligned right."""
    escaped = [[_in_markdown(cell) for cell in row] for row in _shown(cells)]
    widths = [max(3, w) for w in _widths(escaped)]
    rule = ["-" * w if i < 2 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines = [_pad(escaped[0], widths), rule, *(_pad(row, widths) for row in escaped[1:])]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def latex(cells: Cells) -> str:
    """Return a LaTeX tabular; it needs the package booktabs."""
    escaped = [["".join(_LATEX.get(c, c) for c in cell) for cell in row] for row in _shown(cells)]
    columns = "ll" + "r" * (len(cells[0]) - 2)
    body = [" & ".join(row) + " \\\\" for row in escaped]
    lines = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", body[0], "\\midrule", *body[1:], "\\bottomrule"]
    return "\n".join([*lines, "\\end{tabular}", ""])


def html(cells: Cells) -> str:
    """Return an HTML table."""
    head, *rows = ["".join(f"<td>{html_module.escape(c)}</td>" for c in row) for row in _shown(cells)]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><tr>{head.replace('td>', 'th>')}</tr>{body}</table>"


def _shown(cells: Cells) -> Cells:
    return [[on_one_line(cell) for cell in row] for row in cells]


def _in_markdown(cell: str) -> str:
    return _MARKDOWN.sub(lambda m: f"\\{m[0]}", html_module.escape(cell, quote=False))


def _widths(cells: Cells) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _pad(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
