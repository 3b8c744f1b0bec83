"""Export a ledger's contents, streamed and atomically: either the new file is complete or the old one stays."""

import csv
import io
import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from linker.base.errors import InputError
from linker.base.files import replacing
from linker.review.agreement import decided
from linker.review.exporting import asreview, ris
from linker.review.exporting.asreview import Labelled
from linker.review.exporting.prisma import as_svg, as_text, flow_of
from linker.review.exporting.rows import Cell, Documents, ExportRow, escaped, guarded, joined, numbered, table
from linker.review.interface import Judgement, Seed, Verdict
from linker.review.ledger import Ledger

MAX_ROWS = 1_048_575  # maximum number of rows of an XLSX sheet, not counting its header
MEASURED = 200  # number of rows from which the column widths are computed
NARROW, WIDE = 8, 60  # column widths in characters
EXACT = 10**15  # larger numbers are written as text in XLSX, which keeps 15 digits; post ids have 19
PAIRS = (".csv", ".xlsx", ".jsonl")  # formats with texts as well as verdicts
GRADES = {"relevant": 1, "not": 0}  # qrels grades; "maybe" has none and is left out


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of an export: judgements, documents not found, and data that the format cannot hold.

    `left_out` judgements have no place in qrels or runs (maybe, skip, unresolved conflicts; imported ones in runs);
    `cut` cells were truncated for XLSX. `what` names the rows.
    """

    path: Path
    rows: int
    without_document: int = 0
    left_out: int = 0
    cut: int = 0
    what: str = "judgements"


@dataclass(slots=True)
class _Job:
    """The input of a writer: the judgements, a function that returns their rows, and whether CSV begins with a BOM.

    `short`: tables leave out columns in which nothing was stored.
    """

    judgements: Sequence[Judgement]
    rows: Callable[[], Iterable[ExportRow]]
    bom: bool
    short: bool = False
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
    for_asreview: bool = False,
) -> ExportReport:
    """Write the current judgements of all or some reviewers, verdicts and seeds; the file's suffix sets the format.

    .csv, .xlsx, .jsonl and .ris get every judgement with the texts and metadata of seed and document (`documents`: an
    Engine; with None, they lack what only the index contains). .qrels gets one relevance per seed and document, .run
    the documents in the order in which they were read (without imported ones, which were not read here). `bom`: CSV
    begins with a byte order mark, by which Excel recognises UTF-8. With `for_asreview`, .csv, .xlsx and .ris get every
    document instead, including the unread ones, as ASReview writes them; .asreview, its project file, always does. .svg
    and .txt get the PRISMA flow diagram. Raises InputError if the suffix or the reviewer is unknown, the format cannot
    represent an id, or the file cannot be written.
    """
    suffix = check_suffix(path)
    if reviewer is not None and reviewer not in (names := ledger.reviewers):
        known = ", ".join(repr(name) for name in names) or "nobody"
        raise InputError(f"{reviewer!r} has judged nothing in {ledger.path}: reviewers are {known}")
    chosen = [
        j
        for j in ledger.judgements(reviewer)
        if (verdicts is None or j.verdict in verdicts) and (seeds is None or j.seed in seeds)
    ]
    known_seeds = ledger.seeds
    if suffix in FLOWS:
        return _flow(chosen, known_seeds, documents, path)
    if for_asreview or suffix not in WRITERS:
        return _for_asreview(chosen, known_seeds, documents, path)
    job = _Job(chosen, lambda: joined(chosen, known_seeds, documents), bom)
    with replacing(path) as file:
        written = WRITERS[suffix](job, file, path)
    missing = sum(documents is None or j.id not in documents for j in chosen)
    return ExportReport(path, written, missing, len(chosen) - written, job.cut)


def _flow(
    judgements: Sequence[Judgement], seeds: Sequence[Seed], documents: Documents | None, path: Path
) -> ExportReport:
    ids = None if documents is None else {document.id for document in documents.documents()}
    flow = flow_of(judgements, {seed.document for seed in seeds if seed.document}, ids)
    with replacing(path) as file:
        file.write(FLOWS[path.suffix.lower()](flow).encode())
    return ExportReport(path, flow.identified, what="records")


def _for_asreview(
    judgements: Sequence[Judgement], seeds: Sequence[Seed], documents: Documents | None, path: Path
) -> ExportReport:
    """Write every document with its label. Raises InputError without an index, or if ASReview lacks the format."""
    write = FOR_ASREVIEW.get(path.suffix.lower())
    if write is None:
        raise InputError(f"ASReview cannot read {path}: its name must end in {', '.join(FOR_ASREVIEW)}")
    if documents is None:
        raise InputError("an export for ASReview includes unread documents: name their index with `index`")
    rows = asreview.labelled(documents.documents(), judgements, seeds)
    with replacing(path) as file:
        cut = write(rows, file, path.stem)
    left = {j.id for j in judgements} - {row.document.id for row in rows if row.judgement}
    return ExportReport(path, len(rows), 0, len(left), cut, "documents")


def write_pairs(rows: Sequence[ExportRow], path: Path) -> None:
    """Write pairs that nobody has judged, for reviewers to fill in verdicts: .csv, .xlsx or .jsonl.

    Raises InputError for any other suffix, or if the file cannot be written.
    """
    if path.suffix.lower() not in PAIRS:
        raise InputError(f"cannot tell the format of {path}: its name must end in {', '.join(PAIRS)}")
    job = _Job([row.judgement for row in rows], lambda: rows, bom=True, short=True)
    with replacing(path) as file:
        WRITERS[path.suffix.lower()](job, file, path)


def check_suffix(path: Path) -> str:
    """Return a path's suffix in lower case. Raises InputError if no format has it, naming the suffixes that do."""
    suffix, known = path.suffix.lower(), [*WRITERS, *FOR_ASREVIEW, *FLOWS]
    if suffix not in known:
        raise InputError(
            f"cannot tell the format of {path}: its name must end in {', '.join(dict.fromkeys(known))}"
        )
    return suffix


def _write_csv(job: _Job, file: IO[bytes], _: Path) -> int:
    cells_to_csv(table(job.rows, short=job.short), file, bom=job.bom)
    return len(job.judgements)


def cells_to_csv(rows: Iterable[Sequence[Cell]], file: IO[bytes], *, bom: bool = True) -> None:
    """Write rows of cells as CSV, so that no spreadsheet mistakes a cell for a formula."""
    text = io.TextIOWrapper(file, "utf-8-sig" if bom else "utf-8", newline="")
    writer = csv.writer(text)
    for cells in rows:
        writer.writerow([guarded(cell) if isinstance(cell, str) else _plain(cell) for cell in cells])
    text.detach()  # flushes the text and leaves the file open


def _plain(cell: Cell) -> Cell:
    return str(cell).lower() if isinstance(cell, bool) else cell


def _write_xlsx(job: _Job, file: IO[bytes], path: Path) -> int:
    if len(job.judgements) > MAX_ROWS:
        rows = f"{len(job.judgements):,} rows, but XLSX allows only {MAX_ROWS:,}"
        raise InputError(f"{path}: {rows}: write .csv instead")
    job.cut = cells_to_xlsx(table(job.rows, short=job.short), file, "judgements")
    return len(job.judgements)


def cells_to_xlsx(rows: Iterable[Sequence[Cell]], file: IO[bytes], title: str) -> int:
    """Write a header and rows as a sheet with fitted columns and a filter; return the number of truncated cells.

    Raises InputError if there are too many rows for a sheet.
    """
    from openpyxl import Workbook
    from openpyxl.utils import get_column_letter

    book = Workbook(write_only=True)
    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    rows = iter(rows)
    first = list(itertools.islice(rows, MEASURED))
    width = max((len(cells) for cells in first), default=1)
    for number in range(width):
        lengths = [
            len(str(cells[number])) for cells in first if number < len(cells) and cells[number] is not None
        ]
        sheet.column_dimensions[get_column_letter(number + 1)].width = min(max([*lengths, NARROW]) + 2, WIDE)
    cut = count = 0
    for count, cells in enumerate(itertools.chain(first, rows), start=1):
        if count > MAX_ROWS + 1:
            raise InputError(f"more rows than XLSX allows ({MAX_ROWS:,}): write .csv")
        made = [_xlsx_cell(sheet, cell, bold=count == 1) for cell in cells]
        sheet.append([cell for cell, _ in made])
        cut += sum(is_cut for _, is_cut in made)
    sheet.auto_filter.ref = f"A1:{get_column_letter(max(width, 1))}{max(count, 1)}"
    book.save(file)
    return cut


def _xlsx_cell(sheet: Any, cell: Cell, *, bold: bool) -> tuple[Any, bool]:
    """Return a cell, in which text is never a formula, whatever it begins with, and whether it was truncated."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    if cell is None or (isinstance(cell, int | float) and abs(cell) < EXACT):  # false for NaN and infinity
        return cell, False
    text, cut = escaped(str(cell))
    made = WriteOnlyCell(sheet, text)
    made.data_type = "s"  # otherwise a text that begins with = would be a formula
    if guarded(text) != text:
        made.quotePrefix = True  # so it stays text if somebody edits it
    if bold:
        made.font = Font(bold=True)
    return made, cut


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
    read = (j for j in job.judgements if j.verdict != "skip" and j.phase != "prior")
    for seed, ids in numbered(read).items():
        for rank, id_ in enumerate(ids, start=1):
            topic, document = _columns(path, seed, id_)
            file.write(f"{topic} Q0 {document} {rank} {len(ids) - rank + 1} review\n".encode())
        count += len(ids)
    return count


def _csv_for_asreview(rows: Sequence[Labelled], file: IO[bytes], _: str) -> int:
    cells_to_csv(asreview.table(rows), file, bom=False)  # ASReview would read a BOM as part of the first name
    return 0


def _ris_for_asreview(rows: Sequence[Labelled], file: IO[bytes], _: str) -> int:
    file.writelines(line.encode() for line in asreview.ris_lines(rows))
    return 0


def _project(rows: Sequence[Labelled], file: IO[bytes], name: str) -> int:
    table = io.BytesIO()
    cells_to_csv(asreview.table(rows, added=False), table, bom=False)
    asreview.write_project(rows, table.getvalue(), file, name)
    return 0


def _columns(path: Path, *ids: str) -> tuple[str, ...]:
    """Return the ids unchanged. Raises InputError if one cannot be a column of a TREC file."""
    for id_ in ids:
        if not id_ or len(id_.split()) != 1:
            raise InputError(f"{path}: the id {id_!r} cannot be a TREC column: write .csv, .xlsx or .jsonl")
    return ids


WRITERS: dict[str, Callable[[_Job, IO[bytes], Path], int]] = {
    ".csv": _write_csv,
    ".xlsx": _write_xlsx,
    ".jsonl": _write_jsonl,
    ".qrels": _write_qrels,
    ".run": _write_run,
    ".ris": _write_ris,
}
# Formats for ASReview: writers of every document, which return the number of truncated cells.
FOR_ASREVIEW: dict[str, Callable[[Sequence[Labelled], IO[bytes], str], int]] = {
    ".csv": _csv_for_asreview,
    ".xlsx": lambda rows, file, _: cells_to_xlsx(asreview.table(rows), file, "documents"),
    ".ris": _ris_for_asreview,
    ".asreview": _project,
}
FLOWS = {".svg": as_svg, ".txt": as_text}
