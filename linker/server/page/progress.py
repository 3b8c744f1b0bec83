"""Progress: documents read and found, the stopping rule's advice and reasons, the audit."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from linker.review.rows.states import counts
from linker.review.session import note_of_rows
from linker.server.page import matching
from linker.server.page.curves import curve, paces
from linker.server.page.rendering import address, page, translate
from linker.server.page.reviews import InReview

router = APIRouter(prefix="/p/{project}/progress")


@router.get("", name="progress")
def show(request: Request, opened: InReview) -> Response:
    """Show the review's numbers and its curve."""
    progress = opened.review.progress()
    left = progress.stop.left
    most = None if left is None else progress.found + left
    rows = matching.rows_of(opened) if matching.is_rows(opened) else []
    values = {
        "rows": counts(rows) if rows else None,
        "note": note_of_rows(rows, len(opened.review.population.rows)),
        "states": matching.STATE_NAMES,
        "progress": progress,
        "settings": opened.review.settings,
        "enough": opened.review.enough(),
        "most": most,
        "curve": curve(progress.curve, most, translate(request)) if progress.curve else None,
        "by_language": opened.review.languages(),
        "paces": paces(opened.ledger.history()),
    }
    return page(request, "progress.html", values, project=opened.project)


@router.post("/audit", name="audit")
def begin(request: Request, opened: InReview) -> Response:
    """Draw at random from the unread documents from now on."""
    opened.review.begin_audit()
    return RedirectResponse(address(request, "judge", project=opened.project.key), 303)


@router.post("/resume", name="resume")
def resume(request: Request, opened: InReview) -> Response:
    """Return to the queue."""
    opened.review.resume()
    return RedirectResponse(address(request, "judge", project=opened.project.key), 303)
