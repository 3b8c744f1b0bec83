"""Turn a record of a corpus into a document, or state why it is unusable."""

import dataclasses
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
import xxhash

from indexes.errors import BadIdError, Reason, reason_of
from indexes.interface import Document, check_id
from linker.base.files import path_text
from linker.base.logs import logger
from linker.base.terminal import quantity
from linker.corpora.dates import iso_date

IDS = ("_id", "id")
TEXTS = ("text", "contents", "content", "body", "abstract")
KEPT = 1 << 16  # bytes kept from a bad line
MAX_REASON = 400  # maximum length in characters of a reason
NOT_UTF8 = Reason("invalid UTF-8", "not-utf8")
MAX_DEPTH = 64  # maximum depth of lists and objects in metadata; the store's JSON writer supports 254


@dataclass(frozen=True, slots=True, repr=False)
class Columns:
    """The fields of a table or of JSON objects that hold id, text and title, and how the file is written.

    The defaults are the usual names: `_id` or `id`; `text`, `contents`, `content`, `body` or `abstract`; `title` if
    there is one. `id` may be None: ids are then made from the content of each record (see `ContentIds`). `names`
    renames fields that become metadata, (field, name); one renamed to "date" is converted to ISO 8601 from
    `date_format` (of `strptime`). With `usual`, the usual names are accepted after the named ones, as for queries to
    an index with named columns. If None, `encoding` and `delimiter` (of CSV) are guessed, and `sheet` (of XLSX) is the
    first one. `header_row` is the number of the row that names the columns, as a spreadsheet counts; rows above it are
    not read.
    """

    id: str | None = "id"
    text: str = "text"
    title: str | None = None
    names: tuple[tuple[str, str], ...] = ()
    date_format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    usual: bool = False
    header_row: int | None = None

    def __repr__(self) -> str:
        """Return a string that identifies how a corpus is read; newer fields appear only if they are set."""
        later = [
            f", {f.name}={value!r}"
            for f in dataclasses.fields(self)[3:]
            if (value := getattr(self, f.name)) != f.default
        ]
        return f"Columns(id={self.id!r}, text={self.text!r}, title={self.title!r}{''.join(later)})"

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the id field; the first one present counts."""
        return _names(self.id, "id", IDS, self.usual) if self.id else ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the text field; the first one present counts."""
        return _names(self.text, "text", TEXTS, self.usual)

    def to_remember(self) -> dict[str, str | None]:
        """Return the names that an index records: those that are not the usual ones."""
        names = {"id": self.id, "text": self.text, "title": self.title}
        return {name: value for name, value in names.items() if value != getattr(Columns(), name)}

    @classmethod
    def remembered(cls, names: Mapping[str, Any]) -> Self:
        """Return the columns that an index recorded."""
        return cls(**names)


def _names(name: str, default: str, usual: tuple[str, ...], also: bool) -> tuple[str, ...]:
    if name == default:
        return usual
    return (name, *usual) if also else (name,)


@dataclass(frozen=True, slots=True)
class BadLine:
    """An unusable record: its line number (from 1), the reason, and its first 64 KiB."""

    path: Path
    line: int
    reason: str
    raw: bytes
    truncated: bool = False

    @classmethod
    def of(cls, path: Path, line: int, reason: str, raw: bytes, size: int | None = None) -> Self:
        """Return a BadLine with the beginning of `raw`, which had `size` bytes before any truncation."""
        if len(reason) > MAX_REASON:
            facts = {name: _cut(value) for name, value in getattr(reason, "facts", {}).items()}
            reason = Reason(_cut(reason), getattr(reason, "cause", ""), **facts)
        return cls(path, line, reason, raw[:KEPT], max(size or 0, len(raw)) > KEPT)

    @classmethod
    def repeated(cls, path: Path, line: int, document: Document) -> Self:
        """Return the BadLine for a document whose id an earlier one has; `path` is its corpus."""
        return cls.of(path, line, repeated_id(document.id), orjson.dumps(dataclasses.asdict(document)))

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


def _cut(value: Any) -> Any:
    return value[:MAX_REASON] + "…" if isinstance(value, str) and len(value) > MAX_REASON else value


Record = Document | BadLine
Records = Iterator[tuple[int, Record]]  # records, each with the number of its first line


class UnusableError(Exception):
    """A record cannot become a document; the message says why."""


class ContentIds:
    """Ids for records without one: a hash of the content, so that a record keeps its id wherever it moves.

    A row number would change, and invalidate every judgement, as soon as a row is inserted above. Of equal records,
    the second gets "-2", the third "-3": their order does not matter, and none is lost.
    """

    def __init__(self) -> None:
        self._count = Counter[str]()

    def make(self, content: Sequence[str] | dict[str, Any]) -> str:
        """Return the id of the next record: 16 hexadecimal digits, with a number if repeated."""
        id_ = xxhash.xxh3_64_hexdigest(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))
        self._count[id_] += 1
        return id_ if self._count[id_] == 1 else f"{id_}-{self._count[id_]}"


def make_document(fields: dict[str, Any], columns: Columns, id_: Any = None) -> Document:
    """Return a document made from `fields`, which are modified; all but id, text and title become metadata.

    `id_` is the id if `columns` names no id column. Keys of an object under "metadata" override fields of the
    same name. Raises UnusableError if the id or text is missing or cannot be stored.
    """
    id_ = _take(fields, names, "id") if (names := columns.ids) else id_
    text = _take(fields, columns.texts, "text")
    title = fields.pop(columns.title or "title", None)
    title = "" if title is None else title
    if type(id_) is int:
        id_ = str(id_)
    try:
        check_id(id_)
    except BadIdError as e:
        raise UnusableError(reason_of(e)) from None
    if type(text) is not str or type(title) is not str:
        name, value = ("title", title) if type(text) is str else ("text", text)
        raise UnusableError(Reason(f"the {name} is {type(value).__name__}, not a string", "not-text"))
    if "\0" in text or "\0" in title:
        raise UnusableError(Reason("a NUL character in the text or title", "nul"))
    if not (text and not text.isspace()) and not title.strip():
        raise UnusableError(Reason("no text: text and title are empty", "no-text"))
    return Document(id_, text, title, _metadata(_rename(fields, columns)) if fields else fields)


def _rename(fields: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Return the fields renamed as the columns say; an existing field of that name becomes NAME_2."""
    for field, name in columns.names:
        if field in fields:
            value = fields.pop(field)
            if name in fields:
                fields[f"{name}_2"] = fields.pop(name)
            if name == "date" and columns.date_format and isinstance(value, str):
                value = iso_date(value, columns.date_format) or value
            fields[name] = value
    return fields


def _take(fields: dict[str, Any], names: Sequence[str], what: str) -> Any:
    for name in names:
        if name in fields:
            return fields.pop(name)
    wanted = " or ".join(names)
    text = f"no {what}: no field {wanted} among {', '.join(fields) or 'none'}"
    raise UnusableError(Reason(text, "no-column", names=wanted))


def _metadata(fields: dict[str, Any]) -> dict[str, Any]:
    inner = fields.get("metadata")
    if isinstance(inner, dict):
        del fields["metadata"]
        fields = {**fields, **inner} if fields else inner
    for value in fields.values():
        if type(value) is not str and _deeper_than(value, MAX_DEPTH):
            raise UnusableError(Reason(f"metadata nested deeper than {MAX_DEPTH} levels", "nested"))
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


def too_long(size: int, limit: int) -> Reason:
    """Return the reason for not using a line or record beyond the limit."""
    return Reason(f"{size:,} bytes, more than the limit of {limit:,} bytes per record", "too-long")


def repeated_id(id_: str) -> Reason:
    """Return the reason for not using a record whose id an earlier one has."""
    return Reason(f"duplicate id {id_!r}: the first one was kept", "repeated-id", id=id_)


def without_repeats(path: Path, records: Records, ids: set[str] | None = None) -> Iterator[Record]:
    """Yield the records of a corpus; one whose id is in `ids`, to which all are added, becomes a BadLine."""
    ids = set() if ids is None else ids
    for line, record in records:
        if isinstance(record, Document) and record.id in ids:
            yield BadLine.repeated(path, line, record)
            continue
        if isinstance(record, Document):
            ids.add(record.id)
        yield record


def report_skipped(skipped: Sequence[BadLine]) -> None:
    """Log how many records were left out, and the first of them."""
    if skipped:
        first = skipped[0]
        entries = quantity(len(skipped), "unusable entry", "unusable entries")
        logger.info(f"{first.path}: {entries} left out; the first is line {first.line}: {first.reason}")


def wrong_width(count: int, header: Sequence[str]) -> Reason:
    """Return the reason for not using a row of `count` fields."""
    text = f"{quantity(count, 'field')}, expected {len(header)}: {', '.join(header)}"
    return Reason(text, "wrong-width", count=count, wanted=len(header))
