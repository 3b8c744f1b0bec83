"""Export: everything that was judged as a file, and the sentence for the article's method note."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from linker.review.exporting import export
from linker.review.interface import VERDICTS, Verdict
from linker.review.session import note_of
from linker.web.rendering import message, page
from linker.web.reviews import InReview

router = APIRouter(prefix="/p/{project}/export")
FORMATS = {
    "xlsx": message("Spreadsheet for Excel and LibreOffice"),
    "csv": message("Spreadsheet as text (CSV)"),
    "jsonl": message("One JSON object per line, for programs"),
    "ris": message("For reference managers and ASReview (RIS)"),
    "qrels": message("Judgements for trec_eval (qrels)"),
    "run": message("Documents in the order of reading, for trec_eval (run)"),
}


@router.get("", name="export")
def show(request: Request, opened: InReview) -> Response:
    """Offer the formats, and show the sentence."""
    standing = opened.ledger.judgements()
    counts = {verdict: sum(j.verdict == verdict for j in standing) for verdict in VERDICTS}
    values = {
        "formats": FORMATS,
        "counts": counts,
        "count": len(standing),
        "reviewers": opened.ledger.reviewers,
        "note": note_of(opened.review),
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
    with tempfile.NamedTemporaryFile(suffix=f".{format}", delete=False) as file:
        path = Path(file.name)
    try:
        export(opened.ledger, opened.engine, path, reviewer=reviewer or None, verdicts=chosen)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(
        path,
        filename=f"{opened.project.key}.{format}",
        media_type="application/octet-stream",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )
