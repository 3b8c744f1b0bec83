"""Stop: the choices once the stopping rule is met, each with the claim it then allows."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from linker.review.interface import Progress
from linker.review.session import note_of
from linker.server.page.matching import is_rows
from linker.server.page.rendering import address, page
from linker.server.page.reviews import InReview
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}/stop")
SEEN = "stop_seen"  # setting of the ledger: the last occasion on which somebody chose to go on


@router.get("", name="stop")
def show(request: Request, opened: InReview) -> Response:
    """Show the choices at any time; a review of rows has none, since it ends when every row is decided."""
    if is_rows(opened):
        return RedirectResponse(address(request, "rows", project=opened.project.key), 303)
    return stop_page(request, opened)


@router.post("/leave", name="leave_stop")
def leave(request: Request, opened: InReview) -> Response:
    """Continue judging; the choices are shown again when the rule is met on another occasion."""
    opened.ledger.set(SEEN, _occasion(opened, opened.review.progress()))
    return RedirectResponse(address(request, "judge", project=opened.project.key), 303)


def is_due(opened: Opened, progress: Progress) -> bool:
    """Return whether the rule is met on an occasion on which nobody has chosen to go on yet."""
    is_met = (
        progress.phase != "audit" and progress.read < progress.population and bool(opened.review.enough())
    )
    return is_met and opened.ledger.settings.get(SEEN) != _occasion(opened, progress)


def _occasion(opened: Opened, progress: Progress) -> str:
    """Name the occasion: the number wanted, the estimate, or an audit; a find begins another of the last two."""
    until, left = opened.review.settings.until, progress.stop.left
    if until and progress.found >= until:
        return "until"
    if left is None or progress.stop.due:
        return f"estimated {progress.found}"
    return f"audited {progress.found} {opened.ledger.settings.get('audit_now')}"


def stop_page(request: Request, opened: Opened, last: object = None) -> Response:
    """Return the page of choices; `last` is the last judgement, which can be undone here too."""
    review = opened.review
    progress = review.progress()
    values = {
        "progress": progress,
        "settings": review.settings,
        "unread": progress.population - progress.read,
        "enough": review.enough(),
        "offer": review.offer(),
        "doubts": len(review.doubts()),
        "note": note_of(review),
        "confidence": 1 - review.settings.rule_options.get("alpha", 0.05),
        "last": last,
    }
    return page(request, "stop.html", values, project=opened.project)
