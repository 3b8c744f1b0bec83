"""Read the records of a file of judgements: what each says by field name, or why it says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from linker.base.errors import InputError
from linker.base.lines import read_lines
from linker.corpora.dialects import guess_encoding
from linker.corpora.tables import Row, csv_rows
from linker.corpora.workbooks import sheet_rows
from linker.review.exporting import ris
from linker.review.exporting.cells import unescaped, unguarded

Fields = Mapping[str, Any]
Found = tuple[
    int, bytes, Fields | str
]  # number of the first line, its bytes, fields or the reason why there are none


def read_records(path: Path) -> Iterator[Found]:
    """Yield the records of a file, whose suffix names its format. Raises InputError where it has none that is known."""
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(f"cannot tell the format of {path}: its name must end in {', '.join(READERS)}")
    return read(path)


def _read_csv(path: Path) -> Iterator[Found]:
    return _named(path, csv_rows(read_lines(path, encoding=guess_encoding(path))), unguarded)


def _read_xlsx(path: Path) -> Iterator[Found]:
    rows = (
        (number, orjson.dumps(values), ["" if v is None else str(v) for v in values])
        for number, values in sheet_rows(path)
    )
    return _named(path, rows, unescaped)


def _named(path: Path, rows: Iterable[Row], plain: Callable[[str], str]) -> Iterator[Found]:
    """Name the fields of rows by the first of them."""
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


def _read_ris(path: Path) -> Iterator[Found]:
    start, raws, fields = 0, list[bytes](), list[tuple[str, str]]()
    for number, raw, _ in read_lines(path):
        text = raw.decode(errors="replace").rstrip("\r")
        tag, dash, value = text[:2], text[2:5].rstrip(), text[6:]
        if tag == "TY" and dash == "  -":
            if raws:
                yield start, b"\n".join(raws), "a record without its end (ER)"
            start, raws, fields = number, [], []
        if dash == "  -" and tag.isalnum():
            fields.append((tag, value))
        elif fields and text.strip():
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {text.strip()}")  # a continued line
        if start:
            raws.append(raw)
        if tag == "ER" and dash == "  -" and start:
            yield start, b"\n".join(raws), _ris_fields(fields)
            start, raws, fields = 0, [], []
    if raws:
        yield start, b"\n".join(raws), "a record without its end (ER)"


def _ris_fields(fields: list[tuple[str, str]]) -> Fields | str:
    try:
        return ris.judged(fields)
    except orjson.JSONDecodeError as e:
        return f"the note of linker is not JSON: {e}"


READERS: dict[str, Callable[[Path], Iterator[Found]]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".xlsx": _read_xlsx,
    ".jsonl": _read_jsonl,
    ".qrels": _read_qrels,
    ".ris": _read_ris,
}
