"""Export what stands in a ledger, streamed and atomic: the new file is there whole, or the old one stays."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from linker.errors import InputError
from linker.files import replacing
from linker.review.agreement import decided
from linker.review.exporting import ris
from linker.review.exporting.cells import escaped, guarded
from linker.review.exporting.rows import Cell, Documents, Row, joined, numbered, table
from linker.review.interface import Judgement, Verdict
from linker.review.ledger import Ledger

MAX_ROWS = 1_048_575  # that a sheet of XLSX holds, beside its header
EXACT = 10**15  # numbers from here on are text in XLSX, which keeps 15 digits: ids of posts have 19
PAIRS = (".csv", ".xlsx", ".jsonl")  # formats that hold texts beside verdicts
GRADES = {"relevant": 1, "not": 0}  # of qrels; "maybe" is left out, as it is neither


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written: judgements, how many of their documents were not found, and what a format could not hold.

    `left_out` judgements have no place in qrels or runs (maybe, skip, unresolved conflicts); `cut` cells were too long
    for XLSX.
    """

    path: Path
    rows: int
    without_document: int = 0
    left_out: int = 0
    cut: int = 0


@dataclass(slots=True)
class _Job:
    """What a writer needs: the judgements, their rows (again with each call), whether CSV begins with a BOM."""

    judgements: Sequence[Judgement]
    rows: Callable[[], Iterable[Row]]
    bom: bool
    cut: int = 0


def export(
    ledger: Ledger,
    documents: Documents | None,
    path: Path,
    *,
    reviewer: str | None = None,
    verdicts: Collection[Verdict] | None = None,
    seeds: Collection[str] | None = None,
    bom: bool = True,
) -> ExportReport:
    """Write the judgements that stand, of all or some reviewers, verdicts and seeds, to a file named by its format.

    .csv, .xlsx, .jsonl and .ris hold every judgement with the texts and metadata of seed and document (`documents`: an
    Engine; None leaves out what only the index knows). .qrels holds one relevance per seed and document, .run the
    documents in the order they were read. `bom`: CSV begins with a byte order mark, by which Excel knows UTF-8. Raises
    InputError where the suffix is unknown, the format cannot hold an id, or the file cannot be written.
    """
    write = WRITERS[check_suffix(path)]
    chosen = [
        j
        for j in ledger.judgements(reviewer)
        if (verdicts is None or j.verdict in verdicts) and (seeds is None or j.seed in seeds)
    ]
    known_seeds = ledger.seeds
    job = _Job(chosen, lambda: joined(chosen, known_seeds, documents), bom)
    with replacing(path) as file:
        written = write(job, file, path)
    missing = sum(documents is None or j.id not in documents for j in chosen)
    return ExportReport(path, written, missing, len(chosen) - written, job.cut)


def write_pairs(rows: Sequence[Row], path: Path) -> None:
    """Write pairs that nobody has judged, for reviewers to fill in verdicts: .csv, .xlsx or .jsonl.

    Raises InputError where the suffix is another one, or the file cannot be written.
    """
    if path.suffix.lower() not in PAIRS:
        raise InputError(f"cannot tell the format of {path}: its name must end in {', '.join(PAIRS)}")
    job = _Job([row.judgement for row in rows], lambda: rows, bom=True)
    with replacing(path) as file:
        WRITERS[path.suffix.lower()](job, file, path)


def check_suffix(path: Path) -> str:
    """Return a path's suffix in lower case. Raises InputError, naming the known ones, where it names no format."""
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise InputError(f"cannot tell the format of {path}: its name must end in {', '.join(WRITERS)}")
    return suffix


def _write_csv(job: _Job, file: IO[bytes], _: Path) -> int:
    text = io.TextIOWrapper(file, "utf-8-sig" if job.bom else "utf-8", newline="")
    writer = csv.writer(text)
    for cells in table(job.rows):
        writer.writerow([guarded(cell) if isinstance(cell, str) else _plain(cell) for cell in cells])
    text.detach()  # flushes, and leaves the file open
    return len(job.judgements)


def _plain(cell: Cell) -> Cell:
    return str(cell).lower() if isinstance(cell, bool) else cell


def _write_xlsx(job: _Job, file: IO[bytes], path: Path) -> int:
    from openpyxl import Workbook

    if len(job.judgements) > MAX_ROWS:
        raise InputError(f"{path}: a sheet holds {MAX_ROWS:,} rows, not {len(job.judgements):,}: write .csv")
    book = Workbook(write_only=True)
    sheet = book.create_sheet("judgements")
    sheet.freeze_panes = "A2"
    for number, cells in enumerate(table(job.rows)):
        sheet.append([_xlsx_cell(job, sheet, cell, bold=not number) for cell in cells])
    book.save(file)
    return len(job.judgements)


def _xlsx_cell(job: _Job, sheet: Any, cell: Cell, *, bold: bool) -> Any:
    """Return a cell that is text where its value is, whatever it begins with."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    if cell is None or (isinstance(cell, int | float) and abs(cell) < EXACT):  # false for NaN and infinity
        return cell
    text, cut = escaped(str(cell))
    job.cut += cut
    made = WriteOnlyCell(sheet, text)
    made.data_type = "s"  # else a text that begins with = is a formula
    if guarded(text) != text:
        made.quotePrefix = True  # and stays text where somebody edits it
    if bold:
        made.font = Font(bold=True)
    return made


def _write_jsonl(job: _Job, file: IO[bytes], _: Path) -> int:
    for row in job.rows():
        file.write(orjson.dumps(row.record(), option=orjson.OPT_APPEND_NEWLINE))
    return len(job.judgements)


def _write_ris(job: _Job, file: IO[bytes], _: Path) -> int:
    for line in ris.lines(job.rows()):
        file.write(line.encode())
    return len(job.judgements)


def _write_qrels(job: _Job, file: IO[bytes], path: Path) -> int:
    graded = [j for j in decided(job.judgements) if j.verdict in GRADES]
    for judgement in graded:
        seed, id_ = _columns(path, judgement.seed, judgement.id)
        file.write(f"{seed} 0 {id_} {GRADES[judgement.verdict]}\n".encode())
    return len(graded)


def _write_run(job: _Job, file: IO[bytes], path: Path) -> int:
    """Write the order of reading: scores fall from the number of documents to 1, since trec_eval orders by them."""
    count = 0
    for seed, ids in numbered(j for j in job.judgements if j.verdict != "skip").items():
        for rank, id_ in enumerate(ids, start=1):
            topic, document = _columns(path, seed, id_)
            file.write(f"{topic} Q0 {document} {rank} {len(ids) - rank + 1} review\n".encode())
        count += len(ids)
    return count


def _columns(path: Path, *ids: str) -> tuple[str, ...]:
    """Return the ids. Raises InputError where one is no column of a TREC file."""
    for id_ in ids:
        if not id_ or len(id_.split()) != 1:
            raise InputError(f"{path}: a TREC column cannot hold the id {id_!r}: write .csv, .xlsx or .jsonl")
    return ids


WRITERS: dict[str, Callable[[_Job, IO[bytes], Path], int]] = {
    ".csv": _write_csv,
    ".xlsx": _write_xlsx,
    ".jsonl": _write_jsonl,
    ".qrels": _write_qrels,
    ".run": _write_run,
    ".ris": _write_ris,
}
