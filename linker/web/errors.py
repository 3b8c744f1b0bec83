"""Errors as pages: what was wrong and what to do, never a traceback."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import NoMatchFound

from indexes.errors import IndexesError
from linker.errors import LinkerError
from linker.web.guard import protect
from linker.web.rendering import address, message, page, translate
from linker.web.reviews import NotReadyError

TEXTS = {
    403: message("This form is too old, or it did not come from this page. Load the page again, and repeat."),
    404: message("There is no such page."),
    405: message("This address takes another kind of request."),
    413: message("This is more than the server takes at once."),
}
WRONG = message("This request cannot be understood: %(field)s.")
OURS = message("Something went wrong here that is not your fault. Nothing that was judged is lost.")


def register(app: FastAPI) -> None:
    """Add the handlers of all errors."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(NotReadyError, _not_ready)
    app.add_exception_handler(LinkerError, _mistake)
    app.add_exception_handler(IndexesError, _mistake)
    app.add_exception_handler(Exception, _ours)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = TEXTS.get(error.status_code)
    text = translate(request).text(known) if known else str(error.detail)
    return page(request, "error.html", error=text, status=error.status_code)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = ", ".join(dict.fromkeys(str(e["loc"][-1]) for e in error.errors()))
    return page(request, "error.html", error=translate(request).text(WRONG, field=fields), status=422)


async def _mistake(request: Request, error: Exception) -> Response:
    return page(request, "error.html", error=str(error), status=400)


async def _not_ready(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotReadyError)
    try:
        return RedirectResponse(address(request, "project", project=error.project.key), 303)
    except NoMatchFound:
        text = translate(request).text(message("This review has no documents yet."))
        return page(request, "error.html", error=text, status=409)


async def _ours(request: Request, error: Exception) -> Response:
    response = page(request, "error.html", error=translate(request).text(OURS), status=500)
    protect(response.headers)  # this handler runs outside the guard
    return response
