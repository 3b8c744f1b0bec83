"""Texts to spreadsheet cells and back: never a formula, nor a character that XML forbids."""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson

# Spreadsheets take a cell that begins like this as a formula (OWASP, "CSV injection"), also in full-width forms. A cell
# with apostrophes before such a beginning also gets one more, so that removing one always restores the original.
FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
MAX_CELL = 32_767  # UTF-16 units that a cell of XLSX holds
CUT = " … [cut: a cell holds 32,767 characters]"
# Characters that XML cannot hold, or would change, are written _xHHHH_ (ECMA-376, part 1, 22.9.2.19),
# and so is text that looks like it.
FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def guarded(text: str) -> str:
    """Return the text for a cell of CSV; a would-be formula is prefixed with an apostrophe."""
    return "'" + text if FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """Return the text that was passed to `guarded`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def escaped(text: str) -> tuple[str, bool]:
    """Return the text for a cell of XLSX and whether it was truncated."""
    text = FORBIDDEN.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
    if len(text) * 2 <= MAX_CELL or len(units := text.encode("utf-16-le")) <= 2 * MAX_CELL:
        return text, False
    return units[: 2 * (MAX_CELL - len(CUT))].decode("utf-16-le", "ignore") + CUT, True


def unescaped(text: str) -> str:
    """Return the text that was passed to `escaped`."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def tags_text(tags: Sequence[str]) -> str:
    """Return tags as people write them, "one; two", or as a JSON array if a tag would not survive that."""
    plain = "; ".join(tags)
    return plain if tags_of(plain) == tuple(tags) else orjson.dumps(list(tags)).decode()


def tags_of(text: str) -> tuple[str, ...]:
    """Return the tags in a text from `tags_text`."""
    if text.startswith("["):
        try:
            values = orjson.loads(text)
        except orjson.JSONDecodeError:
            values = None
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return tuple(values)
    return tuple(tag.strip() for tag in text.split(";") if tag.strip())
