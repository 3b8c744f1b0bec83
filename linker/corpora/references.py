"""Read the files of reference managers: RIS (Zotero, EndNote, Scopus, ASReview) and NBIB (PubMed's MEDLINE).

Both write one `TAG - value` per line, the tag padded to four characters, and continue long values on further lines.
A RIS record runs from TY to ER, an NBIB record from PMID to the next PMID.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from indexes.errors import reason_of
from linker.base.lines import MAX_LINE, Line
from linker.corpora.records import (
    NOT_UTF8,
    BadLine,
    Columns,
    ContentIds,
    Records,
    UnusableError,
    is_utf8,
    make_document,
    too_long,
)

Fields = Sequence[tuple[str, str]]  # tag and value, in order
# Number of the first line; the lines; the fields, or why there are none.
Tagged = tuple[int, bytes, Fields | str]

RIS = re.compile(r"([A-Z][A-Z0-9])  -(?: (.*))?")
NBIB = re.compile(r"(?=.{4}-)([A-Z]{2,4}) *- (.*)")
STARTS = {"TY": RIS, "PMID": NBIB}  # the tag that begins a record → the format of its lines
LAST = "ER"
IDS = ("PMID", "ID", "AN", "DO")
TITLES, TEXTS = ("TI", "T1", "BTI", "CT", "TT"), ("AB", "N2")
# Metadata name → the tags that hold it: on reading, the first one present counts; RIS is written with the first one.
METADATA: Mapping[str, Sequence[str]] = {
    "authors": ("AU", "A1"),
    "year": ("PY", "Y1", "DP", "DA"),
    "journal": ("JO", "JF", "JT", "T2", "JA", "TA"),
    "keywords": ("KW", "OT", "MH"),
    "doi": ("DO", "LID", "AID"),
    "url": ("UR", "LK"),
    "date": ("DA",),
    "language": ("LA",),
    "volume": ("VL", "VI"),
    "issue": ("IS", "IP"),
    "pages": ("SP", "PG"),
    "type": ("TY", "PT"),
}
LISTS = {"authors", "keywords"}
YEAR = re.compile(r"\d{4}")
MEDLINE_DOI = re.compile(r"(\S+) \[doi\]")


def tagged_records(lines: Iterable[Line], limit: int = MAX_LINE) -> Iterator[Tagged]:
    """Yield the records of a RIS or NBIB file: their fields, or the reason why a record has none."""
    start, raws, fields, size, pattern = 0, list[bytes](), list[tuple[str, str]](), 0, RIS
    for number, raw, length in lines:
        text = raw.decode(errors="replace").rstrip("\r")
        begun = next((p for tag, p in STARTS.items() if text.startswith(f"{tag:4}-")), None)
        if begun:
            if start:
                yield start, b"\n".join(raws), _whole(fields, raws, size, limit)
            start, raws, fields, size, pattern = number, [], [], 0, begun
        if not start:
            continue
        size += length + 1
        raws += [raw] if size <= limit else []
        if found := pattern.fullmatch(text):
            fields.append((found[1], (found[2] or "").strip()))
        elif text.strip():
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {text.strip()}".strip())
        if found and found[1] == LAST and pattern is RIS:
            yield start, b"\n".join(raws), _whole(fields, raws, size, limit)
            start = 0
    if start:
        yield start, b"\n".join(raws), _whole(fields, raws, size, limit)


def _whole(fields: Fields, raws: Sequence[bytes], size: int, limit: int) -> Fields | str:
    if size > limit:
        return too_long(size, limit)
    if not is_utf8(b"\n".join(raws)):
        return NOT_UTF8
    if fields[0][0] == "TY" and fields[-1][0] != LAST:
        return "a record without its end (ER)"
    return fields


def read_references(path: Path, lines: Iterable[Line], columns: Columns, limit: int = MAX_LINE) -> Records:
    """Yield the documents of a RIS or NBIB file, each with its line number; an unusable one as a BadLine.

    The text is the abstract. A record without its own id is identified by its DOI, else by its content, as all are if
    `columns.id` is None.
    """
    ids = ContentIds()
    for number, raw, fields in tagged_records(lines, limit):
        try:
            if isinstance(fields, str):
                raise UnusableError(fields)
            record = document_fields(fields)
            yield (
                number,
                make_document(record | {"id": record_id(fields, ids, own=columns.id is not None)}, Columns()),
            )
        except UnusableError as e:
            yield number, BadLine.of(path, number, reason_of(e), raw)


def record_id(fields: Fields, ids: ContentIds | None = None, *, own: bool = True) -> str:
    """Return a record's id: its own, its DOI or, without either or if not `own`, a hash of its content.

    `ids` makes the ids of equal records differ. The id is empty if the record has none of these.
    """
    id_ = next((value for tag in IDS for name, value in fields if own and name == tag and value), "")
    if id_ and " " not in id_ and id_.isprintable():
        return id_
    record = document_fields(fields)
    content = [record["title"], record["text"]]
    return (ids or ContentIds()).make(content) if any(content) else ""


def document_fields(fields: Fields) -> dict[str, Any]:
    """Return title, text and metadata of a record by name; notes by ASReview or linker are not metadata."""
    values: dict[str, list[str]] = {}
    for tag, value in fields:
        if value:
            values.setdefault(tag, []).append(value)
    record: dict[str, Any] = {
        "title": next((values[tag][0] for tag in TITLES if tag in values), ""),
        "text": next((values[tag][0] for tag in TEXTS if tag in values), ""),
    }
    for name, tags in METADATA.items():
        texts = next((values[tag] for tag in tags if tag in values), [])
        if value := _metadata(name, texts, values):
            record[name] = value
    return record


def _metadata(name: str, texts: Sequence[str], values: Mapping[str, Sequence[str]]) -> Any:
    if name in LISTS:
        return [*texts]
    if name == "year":
        return next((int(found[0]) for value in texts if (found := YEAR.search(value))), None)
    if name == "doi" and "DO" not in values:
        return next((found[1] for value in texts if (found := MEDLINE_DOI.fullmatch(value))), None)
    if name == "date" and texts:
        return texts[0].strip("/").replace("/", "-")
    if name == "pages" and "EP" in values and texts:
        return f"{texts[0]}-{values['EP'][0]}"
    return texts[0] if texts else None
