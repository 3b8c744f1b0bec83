"""How values are displayed in an interactive session: one short line, or an HTML table in a notebook."""

import html
from collections.abc import Iterable, Sequence

Pieces = Sequence[tuple[str, bool]]  # pieces of a text, each with a flag that says whether it is marked
SHOWN = 10  # maximum number of elements of a long value to show
WIDTH = 200  # maximum number of characters of a text to show


def brief(parts: Sequence[str], limit: int = SHOWN) -> str:
    """Return the first parts, separated by commas, and how many more there are."""
    more = f", and {len(parts) - limit:,} more" if len(parts) > limit else ""
    return ", ".join(parts[:limit]) + more


def one_line(text: str, width: int = WIDTH) -> str:
    """Return a text on one line, truncated to `width` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


class Html(str):
    """Text that is already HTML, which `table` does not escape."""

    __slots__ = ()


def marked_html(pieces: Pieces) -> Html:
    """Return the pieces of a text as HTML, escaped, with the marked ones in <mark>."""
    escaped = ((html.escape(text), is_marked) for text, is_marked in pieces)
    return Html("".join(f"<mark>{text}</mark>" if is_marked else text for text, is_marked in escaped))


def _cell(value: object) -> str:
    return value if isinstance(value, Html) else html.escape(str(value))


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = (), caption: str = "") -> str:
    """Return an HTML table; every text in it is escaped, except Html."""
    parts = ["<table>", f"<caption>{html.escape(caption)}</caption>" if caption else ""]
    if head:
        parts.append(f"<tr>{''.join(f'<th>{html.escape(name)}</th>' for name in head)}</tr>")
    for row in rows:
        parts.append(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>")
    return "".join([*parts, "</table>"])
