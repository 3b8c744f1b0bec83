"""A table of strings, whose first row is the header, as plain text, Markdown, LaTeX or HTML."""

import html as html_module
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from linker.base.printable import on_one_line

Cells = Sequence[Sequence[str]]
Places = AbstractSet[tuple[int, int]]  # (row, column), from 0; row 0 is the header

_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    # At the beginning of a row, these would be parsed as arguments of the preceding \\.
    "[": "{[}",
    "*": "{*}",
}
# Markdown treats underscores inside words literally, and measure names have them.
_MARKDOWN = re.compile(r"[\\`*~$|\[\]]|(?<![^\W_])_|_(?![^\W_])")


def plain(cells: Cells) -> str:
    """Return aligned columns, separated by two spaces."""
    cells = _printable(cells)
    widths = _widths(cells)
    return "".join("  ".join(_pad(row, widths)).rstrip() + "\n" for row in cells)


def markdown(cells: Cells, bold: Places = frozenset()) -> str:
    """Return a Markdown table, the cells (row, column) of `bold` in bold; all columns but two are aligned right."""
    escaped = [
        [f"**{_in_markdown(cell)}**" if (i, j) in bold else _in_markdown(cell) for j, cell in enumerate(row)]
        for i, row in enumerate(_printable(cells))
    ]
    widths = [max(3, w) for w in _widths(escaped)]
    rule = ["-" * w if i < 2 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines = [_pad(escaped[0], widths), rule, *(_pad(row, widths) for row in escaped[1:])]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def latex(
    cells: Cells, bold: Places = frozenset(), symbols: Mapping[str, str] | None = None, names: int = 2
) -> str:
    """Return a LaTeX tabular, the cells (row, column) of `bold` in bold; it needs the package booktabs.

    The first `names` columns are aligned left. `symbols`: commands for single characters, which never become bold.
    """
    escaped = [
        [_in_latex(cell, (i, j) in bold, symbols or {}) for j, cell in enumerate(row)]
        for i, row in enumerate(_printable(cells))
    ]
    columns = "l" * names + "r" * (len(cells[0]) - names)
    body = [" & ".join(row) + " \\\\" for row in escaped]
    lines = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", body[0], "\\midrule", *body[1:], "\\bottomrule"]
    return "\n".join([*lines, "\\end{tabular}", ""])


def html(cells: Cells) -> str:
    """Return an HTML table."""
    head, *rows = ["".join(f"<td>{html_module.escape(c)}</td>" for c in row) for row in _printable(cells)]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><tr>{head.replace('td>', 'th>')}</tr>{body}</table>"


def _printable(cells: Cells) -> Cells:
    return [[on_one_line(cell) for cell in row] for row in cells]


def _in_latex(cell: str, bold: bool, symbols: Mapping[str, str]) -> str:
    marks = cell[len(cell.rstrip("".join(symbols))) :] if symbols else ""
    text = "".join(_LATEX.get(c, c) for c in cell.removesuffix(marks))
    return (f"\\textbf{{{text}}}" if bold else text) + "".join(symbols[mark] for mark in marks)


def _in_markdown(cell: str) -> str:
    return _MARKDOWN.sub(lambda m: f"\\{m[0]}", html_module.escape(cell, quote=False))


def _widths(cells: Cells) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _pad(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
