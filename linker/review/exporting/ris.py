"""RIS, the format of reference managers: a record per judgement, which Zotero, EndNote and ASReview read."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from indexes.interface import Document
from linker.corpora.references import METADATA, Fields, record_id
from linker.review.exporting.rows import ExportRow, tags_of

# How ASReview writes a label in a note; "maybe" and "skip" have none.
LABELS = {"relevant": "ASReview_relevant", "not": "ASReview_irrelevant"}
UNSEEN = "ASReview_not_seen"
END = "ER  - \r\n\r\n"
OURS = "linker: "  # prefix of a note with the whole record as JSON, so that re-importing loses nothing
# RIS tags of metadata fields, by the names that linker reads and some that other files use.
TAGS = {name: tags[0] for name, tags in METADATA.items() if name not in ("type", "pages")}
TAGS |= {"author": "AU", "lang": "LA", "source": "JO"}
THEIRS = re.compile(r"asreview_(\w+): (.*)")  # a note of ASReview's export, as JSON


def lines(rows: Iterable[ExportRow]) -> Iterator[str]:
    """Yield the lines of a RIS file, with their line ends (CR LF, as the format requires)."""
    for row in rows:
        judgement = row.judgement
        yield from document_lines(row.document)
        yield from (_line("KW", tag) for tag in judgement.tags)
        if judgement.verdict in LABELS:
            yield _line("N1", LABELS[judgement.verdict])
        if judgement.note:
            yield _line("N1", judgement.note)
        own = {name: value for name, value in row.record().items() if name not in ("title", "text")}
        yield f"N1  - {OURS}{orjson.dumps(own).decode()}\r\n"
        yield END


def document_lines(document: Document) -> Iterator[str]:
    """Yield the lines of a document's record, without its last line."""
    yield "TY  - GEN\r\n"
    yield _line("ID", document.id)
    yield _line("TI", document.title or document.text[:200])
    yield _line("AB", document.text)
    for name, value in document.metadata.items():
        if name.lower() in TAGS and value:
            yield from (
                _line(TAGS[name.lower()], str(v)) for v in (value if isinstance(value, list) else [value])
            )


def note_lines(label: str, time: str, note: str, tags: str) -> Iterator[str]:
    """Yield a judgement's notes as in ASReview's export, and the record's last line."""
    yield _line("N1", label)
    for name, value in (("time", time), ("note", note), ("tags", tags)):
        if value:
            yield f"N1  - asreview_{name}: {orjson.dumps(value).decode()}\r\n"
    yield END


def _line(tag: str, text: str) -> str:
    return f"{tag}  - {' '.join(text.split())}\r\n"


def judgement(fields: Fields) -> dict[str, Any]:
    """Return the judgement in a RIS or NBIB record, (tag, text) in order: from linker's own note or from a label.

    Raises orjson.JSONDecodeError if a note is malformed.
    """
    notes = [text for tag, text in fields if tag == "N1"]
    for note in notes:
        if note.startswith(OURS):
            value = orjson.loads(note.removeprefix(OURS))
            return value if isinstance(value, dict) else {}
    verdicts = [name for name, label in LABELS.items() if label in notes]
    # without any label, the field is absent
    verdict = verdicts[:1] or ([""] if UNSEEN in notes else [])
    others = [note for note in notes if not note.lower().startswith("asreview_")]
    theirs = {match[1]: orjson.loads(match[2]) for note in notes if (match := THEIRS.fullmatch(note))}
    record: dict[str, Any] = {
        "id": record_id(fields),
        "note": theirs.get("note") or "\n".join(others),
        "time": theirs.get("time", ""),
        "tags": [
            *tags_of(str(theirs.get("tags") or "")),
            *(
                name.removeprefix("tag_")
                for name, value in theirs.items()
                if name.startswith("tag_") and value
            ),
        ],
    }
    return record | ({"verdict": verdict[0]} if verdict else {})
