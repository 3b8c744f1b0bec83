"""Export: all judgements as a file, the user's own tables with results, and the sentence for the methods section."""

import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from linker.corpora import Columns, preview
from linker.review.exporting import export
from linker.review.exporting.own import ADDED, LINE, Added, of_judgements, of_rows, write_own
from linker.review.interface import VERDICTS, Verdict
from linker.review.project import Project
from linker.review.rows.states import counts
from linker.review.session import note_of, note_of_rows
from linker.review.uploads import is_table, stored
from linker.server.jobs.indexing import UploadedFile
from linker.server.page import matching
from linker.server.page.rendering import NAMES, message, page, translate
from linker.server.page.reviews import InReview
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}/export")
FORMATS = {
    "xlsx": message("Spreadsheet for Excel and LibreOffice"),
    "csv": message("Spreadsheet as text (CSV)"),
    "jsonl": message("One JSON object per line, for programs"),
    "ris": message("For reference managers and ASReview (RIS)"),
    "svg": message("Flow diagram of the review (PRISMA 2020)"),
    "qrels": message("Judgements, for evaluation software"),
    "run": message("Documents in the order of reading, for evaluation software"),
}
COLUMNS = {
    "verdict": message("verdict"),
    "match": message("match"),
    "probability": message("probability"),
    "reviewer": message("reviewer"),
    "time": message("time (UTC)"),
    "note": message("note"),
    "match id": message("match id"),
}


def send(name: str, write: Callable[[Path], object]) -> FileResponse:
    """Return a response that sends the file written by `write(path)` as `name`, and then deletes it."""
    with tempfile.NamedTemporaryFile(suffix=Path(name).suffix, delete=False) as made:
        path = Path(made.name)
    try:
        write(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(
        path,
        filename=name,
        media_type="application/octet-stream",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )


def own_tables(project: Project) -> list[str]:
    """Return the names of the uploaded tables from which documents were made."""
    indexed = project.about.get("indexed", ())
    return [path.name for path in stored(project) if path.name in indexed and is_table(path)]


def own_table(project: Project, name: str) -> tuple[Path, Columns]:
    """Return an uploaded file, and how its columns were read. Raises HTTPException (404) if there is no such file."""
    path = next((path for path in stored(project) if path.name == name), None)
    if path is None:
        raise HTTPException(404)
    known = project.about.get("columns", {}).get(name)
    return path, UploadedFile.of({"path": name, "columns": known}).columns if known else preview(path).guess()


@router.get("", name="export")
def show(request: Request, opened: InReview) -> Response:
    """Offer the formats, and show the sentence for the methods section."""
    about, progress = opened.project.about, opened.review.progress()
    rows = matching.rows_of(opened) if matching.is_rows(opened) else []
    documents = len(opened.review.population.rows)
    values = {
        "formats": FORMATS,
        "progress": progress,
        "count": len(opened.ledger.judgements(rows=True)),
        "states": matching.STATE_NAMES,
        "rows": counts(rows) if rows else None,
        "reviewers": opened.ledger.reviewers,
        "note": note_of_rows(rows, documents) if rows else note_of(opened.review),
        # the review's main file comes first: the posts or, if each row looks for a match, the rows
        "own": sorted(
            own_tables(opened.project),
            key=lambda name: (about["roles"].get(name) == "articles") != (progress.seeds > 0),
        ),
    }
    return page(request, "export.html", values, project=opened.project)


@router.get("/file", name="export_file")
def download(
    opened: InReview,
    format: Annotated[str, Query(max_length=10)] = "xlsx",
    verdict: Annotated[str, Query(max_length=10)] = "",
    reviewer: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Send the judgements as a file."""
    if format not in FORMATS or (verdict and verdict not in VERDICTS):
        raise HTTPException(404)
    chosen: Collection[Verdict] | None = [v for v in VERDICTS if v == verdict] or None
    return send(
        f"{opened.project.key}.{format}",
        lambda path: export(opened.ledger, opened.engine, path, reviewer=reviewer or None, verdicts=chosen),
    )


@router.get("/own", name="export_own")
def download_own(
    request: Request,
    opened: InReview,
    file: Annotated[str, Query(max_length=500)],
    format: Annotated[str, Query(max_length=10)] = "xlsx",
) -> Response:
    """Send an uploaded file back, with the results in additional columns."""
    if format not in ("xlsx", "csv"):
        raise HTTPException(404)
    source, columns = own_table(opened.project, file)
    added = _added(request, opened, opened.project.about.get("roles", {}).get(file) == "articles")
    stem = file.removesuffix(".gz").rpartition(".")[0]
    return send(f"{stem}-{opened.project.key}.{format}", lambda path: write_own(source, columns, added, path))


def _added(request: Request, opened: Opened, of_seeds: bool) -> Added:
    tell, judgements = translate(request).text, opened.ledger.judgements()
    names = [tell(COLUMNS[name]) for name in ADDED]
    if of_seeds and matching.is_rows(opened):
        states: dict[str, str] = {state: tell(text) for state, text in matching.STATE_NAMES.items()}
        return Added(names, of_rows(matching.results(opened), states))
    titles = {seed.id: seed.title or seed.text[:LINE] for seed in opened.review.seeds}

    def name_of(id_: str) -> str:
        if not of_seeds:
            return titles.get(id_, "")
        document = opened.engine.document(id_) if id_ in opened.engine else None
        return (document.title or document.text[:LINE]) if document else ""

    chances = opened.once("chances", judgements, opened.review.chances)
    words = {verdict: tell(text) for verdict, text in NAMES.items()}
    cells = of_judgements(judgements, by_seed=of_seeds, name_of=name_of, words=words, chances=chances)
    return Added(names, cells)
