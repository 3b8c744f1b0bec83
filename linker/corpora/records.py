"""Turn a record of a corpus into a document, or say why it is unusable."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from indexes.interface import BadIdError, Document, check_id
from linker.files import path_text

KEPT = 1 << 16  # bytes of a bad line that are kept
MAX_REASON = 400  # characters
MAX_DEPTH = 64  # levels of lists and objects inside a metadata value; the store's JSON writer ends at 254


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of a table or of JSON objects that hold id, text and title.

    The defaults stand for the usual names: `_id` or `id`; `text`, `contents` or `body`; `title` if there is one.
    """

    id: str = "id"
    text: str = "text"
    title: str | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the id field; the first one present counts."""
        return ("_id", "id") if self.id == "id" else (self.id,)

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the text field; the first one present counts."""
        return ("text", "contents", "body") if self.text == "text" else (self.text,)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A record that cannot be used: where (line number from 1), why, and its first 64 KiB."""

    path: Path
    line: int
    reason: str
    raw: bytes
    truncated: bool = False

    @classmethod
    def of(cls, path: Path, line: int, reason: str, raw: bytes, size: int | None = None) -> Self:
        """Return a BadLine with the beginning of `raw`, which had `size` bytes before an earlier cut."""
        reason = reason if len(reason) <= MAX_REASON else reason[:MAX_REASON] + "…"
        return cls(path, line, reason, raw[:KEPT], max(size or 0, len(raw)) > KEPT)

    def to_json(self) -> dict[str, Any]:
        r"""Return the record for a quarantine file as JSON values: file, line, reason, raw, truncated.

        Bytes that are not UTF-8 are shown as \xNN in `raw`, and then `raw_base64` holds the exact bytes.
        """
        record = {
            "file": path_text(self.path),
            "line": self.line,
            "reason": self.reason,
            "raw": self.raw.decode(errors="backslashreplace"),
            "truncated": self.truncated,
        }
        if not is_utf8(self.raw):
            record["raw_base64"] = b64encode(self.raw).decode()
        return record


Record = Document | BadLine
Records = Iterator[tuple[int, Record]]  # each with the number of its first line


class UnusableError(Exception):
    """A record cannot become a document; the text says why."""


def make_document(fields: dict[str, Any], columns: Columns) -> Document:
    """Return a document made of `fields`, which are changed; all but id, text and title become metadata.

    Keys of an object under "metadata" override fields of the same name. Raises UnusableError where the id or text is
    missing or cannot be stored.
    """
    id_ = _take(fields, columns.ids, "id")
    text = _take(fields, columns.texts, "text")
    title = fields.pop(columns.title or "title", None)
    title = "" if title is None else title
    if type(id_) is int:
        id_ = str(id_)
    try:
        check_id(id_)
    except BadIdError as e:
        raise UnusableError(str(e)) from None
    if type(text) is not str or type(title) is not str:
        name, value = ("title", title) if type(text) is str else ("text", text)
        raise UnusableError(f"the {name} is {type(value).__name__}, not a string")
    if "\0" in text or "\0" in title:
        raise UnusableError("a NUL character in the text or title")
    if not (text and not text.isspace()) and not title.strip():
        raise UnusableError("no text: text and title are empty")
    return Document(id_, text, title, _metadata(fields) if fields else fields)


def _take(fields: dict[str, Any], names: Sequence[str], what: str) -> Any:
    for name in names:
        if name in fields:
            return fields.pop(name)
    raise UnusableError(f"no {what}: no field {' or '.join(names)} among {', '.join(fields) or 'none'}")


def _metadata(fields: dict[str, Any]) -> dict[str, Any]:
    inner = fields.get("metadata")
    if isinstance(inner, dict):
        del fields["metadata"]
        fields = {**fields, **inner} if fields else inner
    if any(_deeper_than(value, MAX_DEPTH) for value in fields.values()):
        raise UnusableError(f"metadata nested deeper than {MAX_DEPTH} levels")
    return fields


def _deeper_than(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list) and (levels == 0 or any(_deeper_than(v, levels - 1) for v in value))


def is_utf8(raw: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def too_long(size: int, limit: int) -> str:
    """Return the reason for not using a line or record beyond the limit."""
    return f"{size:,} bytes, more than the limit of {limit:,} bytes per record"
