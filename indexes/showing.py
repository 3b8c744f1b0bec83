"""How values show themselves in an interactive session: one short line, or an HTML table in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

SHOWN = 10  # elements of a long value
WIDTH = 200  # characters of a text


def brief(parts: Sequence[str], limit: int = SHOWN) -> str:
    """Return the first parts, separated by commas, and how many more there are."""
    more = f", and {len(parts) - limit:,} more" if len(parts) > limit else ""
    return ", ".join(parts[:limit]) + more


def one_line(text: str, width: int = WIDTH) -> str:
    """Return a text on one line, cut to `width` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = (), caption: str = "") -> str:
    """Return an HTML table; every text in it is escaped."""
    parts = ["<table>", f"<caption>{html.escape(caption)}</caption>" if caption else ""]
    if head:
        parts.append(f"<tr>{''.join(f'<th>{html.escape(name)}</th>' for name in head)}</tr>")
    for row in rows:
        parts.append(f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>")
    return "".join([*parts, "</table>"])
