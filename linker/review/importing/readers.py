"""Read the records in a file of judgements: the values of each by field name, or the reason why it is invalid."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from linker.base.errors import InputError
from linker.base.lines import read_lines
from linker.corpora import BadLine, Columns, asreview
from linker.corpora.dialects import guess_encoding
from linker.corpora.reading import numbered_records
from linker.corpora.references import Fields as TaggedFields
from linker.corpora.references import tagged_records
from linker.corpora.tables import Row, csv_rows
from linker.corpora.workbooks import sheet_rows
from linker.review.exporting import ris
from linker.review.exporting.rows import unescaped, unguarded

Fields = Mapping[str, Any]
# number of the record's first line, its bytes, and its fields or the reason why it is invalid
Found = tuple[int, bytes, Fields | str]


def read_records(path: Path) -> Iterator[Found]:
    """Yield the records in a file, whose suffix determines the format. Raises InputError if the suffix is not known."""
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(f"cannot tell the format of {path}: its name must end in {', '.join(READERS)}")
    return read(path)


def _read_csv(path: Path) -> Iterator[Found]:
    return _by_header(path, csv_rows(read_lines(path, encoding=guess_encoding(path))), unguarded)


def _read_xlsx(path: Path) -> Iterator[Found]:
    rows = (
        (number, orjson.dumps(values), ["" if v is None else str(v) for v in values])
        for number, values in sheet_rows(path)
    )
    return _by_header(path, rows, unescaped)


def _by_header(path: Path, rows: Iterable[Row], plain: Callable[[str], str]) -> Iterator[Found]:
    """Yield records whose fields are named by the header row."""
    header: list[str] = []
    for number, raw, fields in rows:
        if isinstance(fields, str):
            if not header:
                raise InputError(f"{path}:{number}: cannot read the header: {fields}")
            yield number, raw, fields
        elif not header:
            header = [plain(name).strip().lower() for name in fields]
        elif any(fields[len(header) :]):
            yield number, raw, f"{len(fields)} fields, expected {len(header)}"
        else:
            yield number, raw, dict(zip(header, map(plain, fields), strict=False))


def _read_jsonl(path: Path) -> Iterator[Found]:
    for number, raw, size in read_lines(path):
        if not raw.strip():
            continue
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError as e:
            yield number, raw, f"not JSON: {e}" if size == len(raw) else "too long"
            continue
        yield number, raw, value if isinstance(value, dict) else "not a JSON object"


def _read_qrels(path: Path) -> Iterator[Found]:
    for number, raw, _ in read_lines(path):
        fields = raw.decode(errors="replace").split()
        if fields and len(fields) != 4:
            yield number, raw, f"{len(fields)} fields, expected 4: topic 0 document relevance"
        elif fields:
            seed, _, id_, relevance = fields
            graded = relevance.removeprefix("-").isdecimal()
            verdict = ("relevant" if int(relevance) > 0 else "not") if graded else relevance
            yield number, raw, {"seed": seed, "id": id_, "verdict": verdict}


def _read_references(path: Path) -> Iterator[Found]:
    number = 0
    for number, raw, fields in tagged_records(read_lines(path, encoding=guess_encoding(path))):
        yield number, raw, fields if isinstance(fields, str) else _judgement(fields)
    if not number and path.stat().st_size:
        raise InputError(f"{path} has no record: one begins with 'TY  - ' in RIS, or with 'PMID- ' in NBIB")


def _judgement(fields: TaggedFields) -> Fields | str:
    try:
        return ris.judgement(fields)
    except orjson.JSONDecodeError as e:
        return f"a note of linker or ASReview is not JSON: {e}"


def _read_asreview(path: Path) -> Iterator[Found]:
    """Yield the records of a project in the order in which they were judged, then the unjudged ones."""
    with asreview.open_project(path) as project:
        labels, count = project.labels(), project.records()
    records = [record for _, record in numbered_records(path, Columns())]
    if len(records) != count:
        raise InputError(f"{path}: its dataset has {len(records):,} records, but its database has {count:,}")
    unread = sorted({*range(count)} - {label.row for label in labels})
    for label in [*labels, *(asreview.Label(row, None, None, "", (), None) for row in unread)]:
        record = records[label.row]
        if isinstance(record, BadLine):
            yield label.row + 1, record.raw, record.reason
        else:
            yield label.row + 1, orjson.dumps(record.id), {
                "id": record.id, "verdict": "" if label.label is None else str(label.label), "note": label.note,
                "tags": list(label.tags), "reviewer": "" if label.user is None else f"user {label.user}",
                "time": "" if label.time is None else iso_time(label.time),
            }  # fmt: skip


def iso_time(seconds: float) -> str:
    """Return seconds since 1970 as a ledger writes times: UTC in ISO 8601, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


READERS: dict[str, Callable[[Path], Iterator[Found]]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".xlsx": _read_xlsx,
    ".jsonl": _read_jsonl,
    ".qrels": _read_qrels,
    ".ris": _read_references,
    ".nbib": _read_references,
    ".asreview": _read_asreview,
}
