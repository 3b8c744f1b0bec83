"""RIS, the format of reference managers: a record per judgement, which Zotero, EndNote and ASReview read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from linker.review.exporting.rows import Row

# ASReview's words for a label, in a note; "maybe" and "skip" have none.
LABELS = {"relevant": "ASReview_relevant", "not": "ASReview_irrelevant"}
UNSEEN = "ASReview_not_seen"
OURS = "linker: "  # a note that holds the whole record as JSON, so that nothing is lost on the way back
# Metadata that has a tag of its own in RIS.
TAGS = {
    "url": "UR",
    "date": "DA",
    "author": "AU",
    "language": "LA",
    "lang": "LA",
    "doi": "DO",
    "source": "JO",
}


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a RIS file, with their ends (CR LF, as the format's definition asks)."""
    for row in rows:
        record = row.record()
        judgement = row.judgement
        yield "TY  - GEN\r\n"
        yield _line("ID", judgement.id)
        yield _line("TI", row.document.title or row.document.text[:200])
        yield _line("AB", row.document.text)
        for name, value in row.document.metadata.items():
            if name.lower() in TAGS and value:
                yield _line(TAGS[name.lower()], str(value))
        yield from (_line("KW", tag) for tag in judgement.tags)
        if judgement.verdict in LABELS:
            yield _line("N1", LABELS[judgement.verdict])
        if judgement.note:
            yield _line("N1", judgement.note)
        own = {name: value for name, value in record.items() if name not in ("title", "text")}
        yield f"N1  - {OURS}{orjson.dumps(own).decode()}\r\n"
        yield "ER  - \r\n\r\n"


def _line(tag: str, text: str) -> str:
    return f"{tag}  - {' '.join(text.split())}\r\n"


def judged(fields: list[tuple[str, str]]) -> dict[str, Any]:
    """Return what a record of RIS, (tag, text) in order, says of a judgement: in our own note, or in a label."""
    notes = [text for tag, text in fields if tag == "N1"]
    for note in notes:
        if note.startswith(OURS):
            value = orjson.loads(note.removeprefix(OURS))
            return value if isinstance(value, dict) else {}
    ids = [text for tag, text in fields if tag == "ID"]
    verdicts = [verdict for verdict, label in LABELS.items() if label in notes]
    others = [note for note in notes if not note.startswith("ASReview_")]
    said = verdicts[:1] or ([""] if UNSEEN in notes else [])  # without any label, there is no such field
    record: dict[str, Any] = {
        "id": ids[0] if ids else "",
        "note": "\n".join(others),
        "tags": [text for tag, text in fields if tag == "KW"],
    }
    return record | ({"verdict": said[0]} if said else {})
