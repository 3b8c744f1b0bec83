"""Settings: a review's job, its target, and who judges."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from linker.base.errors import InputError
from linker.review.settings import Settings
from linker.server.page.rendering import go, message, page
from linker.server.page.reviews import InReview, Short
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}/settings")


@router.get("", name="settings")
def show(request: Request, opened: InReview) -> Response:
    """Show the settings."""
    return _page(request, opened)


@router.post("")
def change(
    request: Request,
    opened: InReview,
    unit: Short = "topic",
    target: Short = "",
    until: Short = "",
    audit: Short = "",
    double: Annotated[bool, Form()] = False,
) -> Response:
    """Store the settings; an invalid value changes nothing."""
    try:
        values: dict[str, Any] = {
            "unit": unit,
            "target": _number(target, 90.0) / 100,
            "until": round(_number(until)) if until.strip() else None,
            "audit": round(_number(audit, 300.0)),
            "double": double,
        }
        Settings.of({**opened.ledger.settings, **values})
    except (ValueError, OverflowError, InputError):
        text = message("Enter a share of at most 100 per cent and whole numbers, all of them above 0.")
        return _page(request, opened, text)
    for key, value in values.items():
        opened.ledger.set(key, value)
    opened.review.refresh()
    return go(request, "settings", opened.project, saved=1)


def _page(request: Request, opened: Opened, error: str = "") -> Response:
    values = {"settings": opened.review.settings, "saved": "saved" in request.query_params}
    return page(request, "settings.html", values, project=opened.project, error=error)


def _number(text: str, default: float = 0.0) -> float:
    """Return the number in a form field, written with a decimal point or comma. Raises ValueError."""
    text = text.strip().removesuffix("%").strip().replace(",", ".")
    return float(text) if text else default
