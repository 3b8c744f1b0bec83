"""Errors as pages: what was wrong and what to do, never a traceback."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from indexes.errors import IndexesError
from linker.base.errors import LinkerError
from linker.base.printable import without_credentials
from linker.review.interface import JudgedMeanwhileError
from linker.server.guard.admission import RefusedError
from linker.server.page.guard import protect
from linker.server.page.rendering import MEANWHILE, NOT_READY, address, message, page, translate
from linker.server.page.reviews import NamelessError, NotReadyError

TEXTS = {
    403: message("This form is too old, or it did not come from this page. Load the page again, and repeat."),
    404: message("There is no such page."),
    405: message("This address takes another kind of request."),
}
WRONG = message("This request cannot be understood: %(field)s.")
OURS = message("Something went wrong here that is not your fault. Nothing that was judged is lost.")


def register(app: FastAPI) -> None:
    """Add the handlers of all errors."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(NotReadyError, _not_ready)
    app.add_exception_handler(NamelessError, _nameless)
    app.add_exception_handler(JudgedMeanwhileError, _meanwhile)
    app.add_exception_handler(LinkerError, _mistake)
    app.add_exception_handler(IndexesError, _mistake)
    app.add_exception_handler(Exception, _ours)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = TEXTS.get(error.status_code)
    if isinstance(error, RefusedError):
        text = translate(request).text(error.text, **error.values)
    else:
        text = translate(request).text(known) if known else str(error.detail)
    answer = page(request, "error.html", error=text, status=error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = ", ".join(dict.fromkeys(str(e["loc"][-1]) for e in error.errors()))
    return page(request, "error.html", error=translate(request).text(WRONG, field=fields), status=422)


async def _mistake(request: Request, error: Exception) -> Response:
    return page(request, "error.html", error=without_credentials(str(error)), status=400)


async def _not_ready(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotReadyError)
    values = {"reason": translate(request).text(NOT_READY)}
    return page(request, "not_ready.html", values, project=error.project, status=409)


async def _nameless(request: Request, error: Exception) -> Response:
    text = translate(request).text(message("Nothing was stored: first say who judges."))
    key = request.path_params.get("project", "")
    back = address(request, "judge", project=key) if key else "/"
    return page(request, "name.html", {"back": back}, error=text, status=403)


async def _meanwhile(request: Request, error: Exception) -> Response:
    return page(request, "error.html", error=translate(request).text(MEANWHILE), status=409)


async def _ours(request: Request, error: Exception) -> Response:
    response = page(request, "error.html", error=translate(request).text(OURS), status=500)
    protect(response.headers)  # this handler runs outside the guard
    return response
