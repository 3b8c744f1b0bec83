"""Errors as pages: the problem and the remedy, in the reader's language."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from indexes.errors import IndexesError, reason_of
from linker.base.errors import LinkerError
from linker.server.api.logs import fault
from linker.server.errors import NOT_YOURS, problem_of
from linker.server.page.guard import protect
from linker.server.page.rendering import NOT_READY, address, message, page, translate
from linker.server.page.reviews import NamelessError, NotReadyError


def register(app: FastAPI) -> None:
    """Register the handlers of all errors."""
    for kind in (HTTPException, RequestValidationError, LinkerError, IndexesError):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(NotReadyError, _not_ready)
    app.add_exception_handler(NamelessError, _nameless)
    app.add_exception_handler(Exception, _ours)


async def _known(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if isinstance(error, LinkerError | IndexesError) and not problem.text:
        return page(request, "error.html", error=reason_of(error), status=400)
    text = translate(request).text(problem.text, **problem.values) if problem.text else str(problem.detail)
    answer = page(request, "error.html", error=text, status=problem.status_code)
    answer.headers.update(problem.headers or {})
    return answer


async def _not_ready(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotReadyError)
    values = {"reason": translate(request).text(NOT_READY)}
    return page(request, "not_ready.html", values, project=error.project, status=409)


async def _nameless(request: Request, error: Exception) -> Response:
    text = translate(request).text(message("Nothing was stored: first say who judges."))
    key = request.path_params.get("project", "")
    back = address(request, "judge", project=key) if key else "/"
    return page(request, "name.html", {"back": back}, error=text, status=403)


async def _ours(request: Request, error: Exception) -> Response:
    fault("", error)
    response = page(request, "error.html", error=translate(request).text(NOT_YOURS), status=500)
    protect(response.headers)  # the guard does not do this here, since this handler runs outside of it
    return response
